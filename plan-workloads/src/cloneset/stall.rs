//! A rollout that stands still: what it waits for, in words.
//!
//! It is told by the message of the `Progressing` condition and one event when the deadline passes, and by `kruise explain`
//! when nothing has moved for the deadline or, without one, for ten minutes.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{cloneset::CloneSet, names::LIFECYCLE_TIMESTAMP};
use kruise_plan_kit::{EventNote, Memory, Why, events, inplace, lifecycle::State};
use kruise_views::ConditionView;

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

/// The line of `kruise explain`, if nothing has moved for long.
pub(super) fn explain(
    set: &CloneSet,
    members: &[Member<'_>],
    memory: &Memory,
    now: Timestamp,
) -> Option<Why> {
    let deadline = set
        .spec
        .progress_deadline_seconds
        .filter(|&seconds| seconds != i32::MAX);
    let patience = deadline.map_or(PATIENCE, |seconds| SignedDuration::from_secs(i64::from(seconds)));
    let quiet = now.duration_since(last_move(set, members)?);
    (quiet > patience).then(|| Why {
        about: String::new(),
        text: format!(
            "stalled: nothing has moved for {} min; {}",
            quiet.as_mins(),
            held_by(set, members, memory)
        ),
    })
}

/// When a pod was last created, moved on, or changed its service.
fn last_move(set: &CloneSet, members: &[Member<'_>]) -> Option<Timestamp> {
    let of_pods = members.iter().flat_map(|member| {
        let pod = member.pod;
        let moved = pod.annotations.get(LIFECYCLE_TIMESTAMP);
        let moved = moved.and_then(|time| time.parse().ok());
        let served = pod.conditions.iter().filter_map(|condition| condition.since);
        pod.created.into_iter().chain(moved).chain(served)
    });
    of_pods.chain(set.metadata.creation_timestamp).max()
}
