//! A rollout that does not move: what it waits for, in words.
//!
//! The condition `Stalled` and one event report it when the deadline passes or, where there is none, once nothing has moved
//! for ten minutes. The condition is removed when something moves or nothing is left to roll out, and for nothing else that
//! is done meanwhile. Attempts that fail move nothing: a set whose writes are refused is reported after ten minutes of that,
//! too. `kruise explain` reports it when nothing has moved for as long as that, from what pods report.
//!
//! A pod that breaks after it was in service is no rollout ([`is_arriving`]): tools take a workload with this condition for
//! a failed one.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    condition::Condition,
    names::{
        IN_PLACE_UPDATE_READY, LIFECYCLE_TIMESTAMP,
        conditions::{DEADLINE_EXCEEDED, NOTHING_MOVED, READY, STALLED},
    },
};
use kruise_views::{ConditionView, PodView, Truth};

use super::{Pod, Rollout, conditions};
use crate::{Memory, inplace, lifecycle::State, plan::Why};

/// Without a deadline.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// How long after a pod was started, or updated in place, its kubelet may report for the first time that it is not ready.
const FIRST_REPORT: SignedDuration = SignedDuration::from_secs(10);

/// Has the pod still to come into service, since it was made or last updated?
pub fn is_arriving(pod: &Pod<'_>) -> bool {
    match pod.state {
        _ if pod.service.is_available() => false,
        State::PreparingDelete => false,
        State::PreparingNormal | State::PreparingUpdate | State::Updating | State::Updated => true,
        State::None | State::Normal | State::Foreign => !was_ready(pod.view),
    }
}

/// Was the pod ready at any time since it was started, or last updated in place? One that never was has not been ready
/// since then.
fn was_ready(pod: &PodView) -> bool {
    let Some(ready) = pod.condition(READY).filter(|_| pod.node.is_some()) else {
        return false;
    };
    let begun = ["PodScheduled", IN_PLACE_UPDATE_READY].map(|kind| {
        let done = pod.condition(kind).filter(|done| done.status == Truth::True);
        done.and_then(|done| done.since)
    });
    let begun = begun.into_iter().flatten().chain(pod.created).max();
    let broke = |(since, begun): (Timestamp, Timestamp)| since.duration_since(begun) > FIRST_REPORT;
    ready.status == Truth::True || ready.since.zip(begun).is_none_or(broke)
}

/// What holds the set up, most important things first.
pub fn held_by(rollout: &Rollout<'_>, pods: &[Pod<'_>], memory: &Memory) -> String {
    let count = |test: &dyn Fn(&Pod<'_>) -> bool| pods.iter().filter(|pod| test(pod)).count();
    let serves = |pod: &Pod<'_>| pod.service.is_available();
    let missing = usize::try_from(rollout.budget.replicas)
        .unwrap_or(0)
        .saturating_sub(pods.len());
    // A pod without a `preNormal` hook leaves `PreparingNormal` as soon as it has a node.
    let hooked = |pod: &Pod<'_>| match pod.state {
        State::PreparingUpdate | State::PreparingDelete | State::Updated => true,
        State::PreparingNormal => pod.view.node.is_some(),
        _ => false,
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
        (count(&|pod| pod.view.node.is_none()), "without a node"),
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
    let held = rollout.charges.held();
    if !held.is_empty() {
        let comma = if text.is_empty() { "pods: " } else { ", " };
        let _ = write!(text, "{comma}{held}");
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

/// What decides about the condition `Stalled`.
pub struct Watch<'a> {
    /// Seconds without progress that the specification allows.
    pub deadline: Option<i32>,
    /// Has that time passed for a rollout with something left to do?
    pub late: bool,
    /// How long nothing has moved, where there is no deadline.
    pub quiet: &'a Quiet,
    /// Describes what is waited for.
    pub held_by: &'a dyn Fn() -> String,
}

/// Adds the condition `Stalled` of a set that waits for something, or removes it once something has moved or nothing is
/// left to do.
pub fn stalled(watch: &Watch<'_>, all: &mut Vec<Condition>, now: Timestamp) -> Stall {
    let Some(deadline) = watch.deadline else {
        return without_deadline(watch, all, now);
    };
    retain(all, watch.late, DEADLINE_EXCEEDED);
    if !watch.late || conditions::get(all, STALLED).is_some() {
        return Stall::default();
    }
    let waited = format!("no progress for {deadline} seconds");
    Stall::with(all, DEADLINE_EXCEEDED, described(waited, &(watch.held_by)()), now)
}

fn without_deadline(watch: &Watch<'_>, all: &mut Vec<Condition>, now: Timestamp) -> Stall {
    let since = |when: Option<Timestamp>| when.map(|when| now.duration_since(when));
    let stays = since(watch.quiet.moved).is_some_and(|quiet| quiet > PATIENCE);
    retain(all, stays, NOTHING_MOVED);
    let is_reported = conditions::get(all, STALLED).is_some();
    let Some(quiet) = since(watch.quiet.since).filter(|_| !is_reported) else {
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
    let waited = format!("nothing has moved for {} minutes", PATIENCE.as_mins());
    Stall::with(all, NOTHING_MOVED, described(waited, &(watch.held_by)()), now)
}

/// Removes the condition, unless it `stays` and has this reason.
fn retain(all: &mut Vec<Condition>, stays: bool, reason: &str) {
    all.retain(|condition| condition.kind != STALLED || (stays && condition.reason == reason));
}

fn described(waited: String, held_by: &str) -> String {
    if held_by.is_empty() {
        return waited;
    }
    format!("{waited}; {held_by}")
}

impl Stall {
    /// The condition becomes True.
    fn with(all: &mut Vec<Condition>, reason: &str, message: String, now: Timestamp) -> Self {
        conditions::set(all, STALLED, ("True", reason), message.clone(), now);
        Self {
            again: None,
            news: Some(message),
        }
    }
}

/// How long nothing may move.
fn patience(deadline: Option<i32>) -> SignedDuration {
    deadline.map_or(PATIENCE, |seconds| SignedDuration::from_secs(i64::from(seconds)))
}

/// The line of `kruise explain`, if nothing has moved for long.
pub fn explain(watch: &Watch<'_>, now: Timestamp) -> Option<Why> {
    let quiet = watch.quiet.since.map(|since| now.duration_since(since));
    let quiet = quiet.filter(|quiet| *quiet > patience(watch.deadline));
    let waited = match (quiet, watch.deadline) {
        (Some(quiet), _) => format!("nothing has moved for {} min", quiet.as_mins()),
        (None, Some(deadline)) if watch.late => format!("no progress for {deadline} s"),
        _ => return None,
    };
    let text = described(waited, &(watch.held_by)());
    Some(Why::of_set(format!("stalled: {text}")))
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
