//! A rollout that does not move: what it waits for, in words.
//!
//! The message of the `Progressing` condition and one event report it when the deadline passes. Where there is none, the
//! condition `Stalled` and one event report it once nothing has moved for ten minutes; the condition is removed when something
//! moves, and for nothing else that is done meanwhile. Attempts that fail move nothing: a set whose writes are refused is
//! reported after ten minutes of that, too. `kruise explain` reports it when nothing has moved for as long as that, from
//! what pods report.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    condition::Condition,
    names::{
        LIFECYCLE_TIMESTAMP,
        conditions::{NOTHING_MOVED, STALLED},
    },
};
use kruise_views::{ConditionView, PodView};

use super::{Pod, conditions};
use crate::{Memory, inplace, lifecycle::State, plan::Why};

/// Without a deadline.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// What holds the set up, most important things first.
pub fn held_by(replicas: i32, pods: &[Pod<'_>], memory: &Memory) -> String {
    let count = |test: &dyn Fn(&Pod<'_>) -> bool| pods.iter().filter(|pod| test(pod)).count();
    let serves = |pod: &Pod<'_>| pod.service.is_available();
    let missing = usize::try_from(replicas).unwrap_or(0).saturating_sub(pods.len());
    let hooked = |pod: &Pod<'_>| {
        matches!(
            pod.state,
            State::PreparingUpdate | State::PreparingDelete | State::Updated
        )
    };
    let counts = [
        (missing, "missing"),
        (
            count(&|pod| pod.updated && !serves(pod)),
            "updated and not available",
        ),
        (
            count(&|pod| !pod.updated && !serves(pod)),
            "of older revisions and not available",
        ),
        (count(&hooked), "held by a lifecycle hook"),
        (
            count(&|pod| refusal(pod).is_some()),
            "waiting for resources that their nodes do not give them",
        ),
        (count(&|pod| !pod.updated), "of older revisions in all"),
    ];
    let mut text = String::new();
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        let comma = if text.is_empty() { "pods: " } else { ", " };
        let _ = write!(text, "{comma}{count} {what}");
    }
    for error in [&memory.scale_error, &memory.update_error].into_iter().flatten() {
        let _ = write!(text, "; the last attempt failed: {error}");
    }
    text
}

/// The condition of a pod being updated whose node does not give it the resources it asks for.
fn refusal<'m>(pod: &Pod<'m>) -> Option<&'m ConditionView> {
    inplace::refusal(pod.view).filter(|_| pod.state == State::Updating)
}

/// The pods that ask for more than their nodes can ever give, in words.
pub fn infeasible(pods: &[Pod<'_>]) -> Option<String> {
    let mut stuck = pods.iter().filter_map(|pod| {
        let refusal = refusal(pod).filter(|refusal| inplace::is_infeasible(refusal))?;
        Some((&pod.view.name, &refusal.message))
    });
    let (name, message) = stuck.next()?;
    let others = match stuck.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!(
        "pod {name}{others}: no room for its new resources on its node, ever: {message}"
    ))
}

/// What became of the condition `Stalled`.
#[derive(Default)]
pub struct Stall {
    /// When to plan again.
    pub again: Option<Duration>,
    /// It became True: its message.
    pub news: Option<String>,
}

/// How long a set with something left to do has not moved.
#[derive(Default)]
pub struct Quiet {
    /// When something last moved; `None` if nothing is left to do. Not computed where it is not needed.
    moved: Option<Timestamp>,
    /// Since when it waits; `None` if something is done now, and not refused, or comes by itself.
    pub since: Option<Timestamp>,
}

impl Quiet {
    /// Of a set with something left to do, which `waits` if nothing is done for that now. `moved` is [`last_move`].
    pub fn of(
        all: &[Condition],
        waits: bool,
        failing: Option<Timestamp>,
        moved: impl FnOnce() -> Option<Timestamp>,
    ) -> Self {
        if !waits && conditions::get(all, STALLED).is_none() {
            return Self::default();
        }
        let moved = moved();
        // What there is to do may be newer than what last moved, but not newer than the first refusal.
        let since = moved.filter(|_| waits).max(failing.filter(|_| waits));
        Self { moved, since }
    }
}

/// Adds the condition `Stalled` of a set that waits for something and has no deadline, or removes it once something has
/// moved or nothing is left to do.
pub fn stalled(
    deadline: Option<i32>,
    all: &mut Vec<Condition>,
    quiet: &Quiet,
    held_by: &dyn Fn() -> String,
    now: Timestamp,
) -> Stall {
    let since = |when: Option<Timestamp>| {
        let when = when.filter(|_| deadline.is_none());
        when.map(|when| now.duration_since(when))
    };
    if since(quiet.moved).is_none_or(|quiet| quiet <= PATIENCE) {
        all.retain(|condition| condition.kind != STALLED);
    }
    let is_reported = conditions::get(all, STALLED).is_some();
    let Some(quiet) = since(quiet.since).filter(|_| !is_reported) else {
        return Stall::default();
    };
    if quiet <= PATIENCE {
        // A second more, because it has to be longer.
        let left = (PATIENCE - quiet).unsigned_abs() + Duration::from_secs(1);
        return Stall {
            again: Some(left),
            news: None,
        };
    }
    let (minutes, held_by) = (PATIENCE.as_mins(), held_by());
    let comma = if held_by.is_empty() { "" } else { "; " };
    let message = format!("nothing has moved for {minutes} minutes{comma}{held_by}");
    conditions::set(all, STALLED, ("True", NOTHING_MOVED), message.clone(), now);
    Stall {
        again: None,
        news: Some(message),
    }
}

/// How long nothing may move.
fn patience(deadline: Option<i32>) -> SignedDuration {
    deadline.map_or(PATIENCE, |seconds| SignedDuration::from_secs(i64::from(seconds)))
}

/// The line of `kruise explain`, if nothing has moved for long.
pub fn explain(
    deadline: Option<i32>,
    moved: Timestamp,
    held_by: impl FnOnce() -> String,
    now: Timestamp,
) -> Option<Why> {
    let quiet = now.duration_since(moved);
    let minutes = quiet.as_mins();
    (quiet > patience(deadline)).then(|| {
        let held_by = held_by();
        Why::of_set(format!("stalled: nothing has moved for {minutes} min; {held_by}"))
    })
}

/// When the set or its update revision was made (`made`), or a pod was last made, changed its state or its service, or
/// should have been gone.
pub fn last_move(
    deadline: Option<i32>,
    made: [Option<Timestamp>; 2],
    pods: &[Arc<PodView>],
    now: Timestamp,
) -> Option<Timestamp> {
    let of_pods = pods.iter().flat_map(|pod| {
        let served = pod.conditions.iter().filter_map(|condition| condition.since);
        pod.created.into_iter().chain(pod.gone_by).chain(served)
    });
    let seen = of_pods.chain(made.into_iter().flatten()).max();
    // Reading the stamps of thousands of pods is expensive, and a pod that changes its state mostly changes its service.
    if seen.is_some_and(|seen| now.duration_since(seen) <= patience(deadline)) {
        return seen;
    }
    let stamps = pods
        .iter()
        .filter_map(|pod| pod.annotations.get(LIFECYCLE_TIMESTAMP)?.parse().ok());
    stamps.chain(seen).max()
}
