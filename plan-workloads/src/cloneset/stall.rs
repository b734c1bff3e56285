//! A rollout that stands still: what it waits for, in words.
//!
//! It is told by the message of the `Progressing` condition and one event when the deadline passes. Where there is none, the
//! condition `Stalled` and one event tell it once nothing has moved for ten minutes; it goes when something moves, and for
//! nothing else that is done meanwhile. Attempts that fail move nothing: a set whose writes are refused is told after ten
//! minutes of that, too. `kruise explain` tells it when nothing has moved for as long as that, by what pods say.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    cloneset::{CloneSet, CloneSetStatus, Condition},
    names::{LIFECYCLE_TIMESTAMP, conditions},
};
use kruise_plan_kit::{EventNote, Memory, Why, events, inplace, lifecycle::State};
use kruise_views::{ConditionView, PodView};

use super::members::{Member, Side};

/// Without a deadline.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// What holds the set up, most telling things first.
pub(super) fn held_by(set: &CloneSet, members: &[Member<'_>], memory: &Memory) -> String {
    let count = |test: &dyn Fn(&Member<'_>) -> bool| members.iter().filter(|member| test(member)).count();
    let serves = |member: &Member<'_>| member.service.is_available();
    let missing = usize::try_from(set.spec.replicas.unwrap_or(1))
        .unwrap_or(0)
        .saturating_sub(members.len());
    let hooked = |member: &Member<'_>| {
        matches!(
            member.state,
            State::PreparingUpdate | State::PreparingDelete | State::Updated
        )
    };
    let counts = [
        (missing, "missing"),
        (
            count(&|member| member.side == Side::New && !serves(member)),
            "updated and not available",
        ),
        (
            count(&|member| member.side == Side::Old && !serves(member)),
            "of older revisions and not available",
        ),
        (count(&hooked), "held by a lifecycle hook"),
        (
            count(&|member| refusal(member).is_some()),
            "waiting for resources that their nodes do not give them",
        ),
        (
            count(&|member| member.side == Side::Old),
            "of older revisions in all",
        ),
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

/// What a node says that does not give a pod on its way the resources it asks for.
fn refusal<'m>(member: &Member<'m>) -> Option<&'m ConditionView> {
    inplace::refusal(member.pod).filter(|_| member.state == State::Updating)
}

/// The pods that ask for more than their nodes can ever give, in words.
pub(super) fn infeasible(members: &[Member<'_>]) -> Option<String> {
    let mut stuck = members.iter().filter_map(|member| {
        let refusal = refusal(member).filter(|refusal| inplace::is_infeasible(refusal))?;
        Some((&member.pod.name, &refusal.message))
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

/// The event of the moment in which such a pod was met.
pub(super) fn never(text: &str) -> EventNote {
    EventNote {
        reason: &events::RESIZE_INFEASIBLE,
        message: text.to_owned(),
    }
}

/// The event of the moment in which the deadline passed.
pub(super) fn event(message: &str) -> EventNote {
    EventNote {
        reason: &events::STALLED,
        message: message.to_owned(),
    }
}

/// What became of the condition `Stalled`.
#[derive(Default)]
pub(super) struct Stall {
    /// When to look again.
    pub(super) again: Option<Duration>,
    /// It became True: its message.
    pub(super) news: Option<String>,
}

/// How long a set with something left to do has stood still.
#[derive(Default)]
pub(super) struct Quiet {
    /// When something last moved; `None` if nothing is left to do. Not looked for where nobody asks.
    moved: Option<Timestamp>,
    /// Since when it waits; `None` if something is done now, and not refused, or comes by itself.
    pub(super) since: Option<Timestamp>,
}

impl Quiet {
    /// Of a set with something left to do, which `waits` if nothing is done for that now. `moved` is [`last_move`].
    pub(super) fn of(
        status: &CloneSetStatus,
        waits: bool,
        failing: Option<Timestamp>,
        moved: impl FnOnce() -> Option<Timestamp>,
    ) -> Self {
        if !waits && !status.conditions.iter().any(is_told) {
            return Self::default();
        }
        let moved = moved();
        // What there is to do may be newer than what last moved, but not newer than the first refusal.
        let since = moved.filter(|_| waits).max(failing.filter(|_| waits));
        Self { moved, since }
    }
}

/// Since when writes have been refused, if the last attempt was.
pub(super) fn failing_since(status: &CloneSetStatus, memory: &Memory) -> Option<Timestamp> {
    let errors = [
        (conditions::FAILED_SCALE, &memory.scale_error),
        (conditions::FAILED_UPDATE, &memory.update_error),
    ];
    let failing = errors.into_iter().filter(|(_, error)| error.is_some());
    let since = failing.filter_map(|(kind, _)| {
        let mut told = status.conditions.iter();
        told.find(|condition| condition.kind == kind)?
            .last_transition_time
    });
    since.min()
}

fn is_told(condition: &Condition) -> bool {
    condition.kind == conditions::STALLED
}

/// Puts the condition `Stalled` into `status` of a set that waits for something and has no deadline, or takes it out once
/// something has moved or nothing is left to do.
pub(super) fn stalled(
    set: &CloneSet,
    status: &mut CloneSetStatus,
    quiet: &Quiet,
    held_by: &dyn Fn() -> String,
    now: Timestamp,
) -> Stall {
    let since = |when: Option<Timestamp>| {
        let when = when.filter(|_| deadline(set).is_none());
        when.map(|when| now.duration_since(when))
    };
    if since(quiet.moved).is_none_or(|quiet| quiet <= PATIENCE) {
        status.conditions.retain(|condition| !is_told(condition));
    }
    let Some(quiet) = since(quiet.since).filter(|_| !status.conditions.iter().any(is_told)) else {
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
    status.conditions.push(Condition {
        kind: conditions::STALLED.into(),
        status: "True".into(),
        last_update_time: Some(now),
        last_transition_time: Some(now),
        reason: conditions::NOTHING_MOVED.into(),
        message: message.clone(),
    });
    Stall {
        again: None,
        news: Some(message),
    }
}

fn deadline(set: &CloneSet) -> Option<i32> {
    let deadline = set.spec.progress_deadline_seconds;
    deadline.filter(|&seconds| seconds != i32::MAX)
}

/// How long nothing may move.
fn patience(set: &CloneSet) -> SignedDuration {
    deadline(set).map_or(PATIENCE, |seconds| SignedDuration::from_secs(i64::from(seconds)))
}

/// The line of `kruise explain`, if nothing has moved for long.
pub(super) fn explain(
    set: &CloneSet,
    members: &[Member<'_>],
    memory: &Memory,
    moved: Timestamp,
    now: Timestamp,
) -> Option<Why> {
    let quiet = now.duration_since(moved);
    (quiet > patience(set)).then(|| Why {
        about: String::new(),
        text: format!(
            "stalled: nothing has moved for {} min; {}",
            quiet.as_mins(),
            held_by(set, members, memory)
        ),
    })
}

/// When the set or its update revision was made, or a pod was last made, moved on, changed its service, or should have been
/// gone.
pub(super) fn last_move(
    set: &CloneSet,
    update: Option<Timestamp>,
    pods: &[Arc<PodView>],
    now: Timestamp,
) -> Option<Timestamp> {
    let of_pods = pods.iter().flat_map(|pod| {
        let served = pod.conditions.iter().filter_map(|condition| condition.since);
        pod.created.into_iter().chain(pod.gone_by).chain(served)
    });
    let seen = of_pods.chain(set.metadata.creation_timestamp).chain(update).max();
    // Reading the stamps of thousands of pods is dear, and whoever changes mostly changes his service, too.
    if seen.is_some_and(|seen| now.duration_since(seen) <= patience(set)) {
        return seen;
    }
    let stamps = pods
        .iter()
        .filter_map(|pod| pod.annotations.get(LIFECYCLE_TIMESTAMP)?.parse().ok());
    stamps.chain(seen).max()
}
