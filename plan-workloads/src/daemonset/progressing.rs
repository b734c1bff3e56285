//! What the `Progressing` condition of a DaemonSet depends on. There is no deadline, so it is always True: its
//! reason says whether something is left to do.

use jiff::Timestamp;
use kruise_api::{
    condition::Condition,
    daemonset::{DaemonSet, DaemonSetStatus},
    names::conditions::PROGRESSING,
};
use kruise_plan_kit::rollout::{Stage, conditions, stalled};

use super::{
    decision::Decision,
    places::{Member, Place},
};

/// Nothing is left to do.
const AVAILABLE: &str = "Available";
/// The update is paused.
const PAUSED: &str = "Paused";
/// All pods that may be updated are, and are available.
const PARTITION_AVAILABLE: &str = "PartitionAvailable";
/// Something is left to do.
const UPDATED: &str = "Updated";

/// Sets the condition in `all`, if it is another one.
pub(super) fn report(
    decision: &Decision<'_>,
    status: &DaemonSetStatus,
    withheld: usize,
    all: &mut Vec<Condition>,
    now: Timestamp,
) {
    let resting = resting(decision, status, withheld);
    let (reason, message) = resting.unwrap_or((UPDATED, "DaemonSet is progressing"));
    let same = conditions::get(all, PROGRESSING).is_some_and(|before| before.reason == reason);
    if !same {
        conditions::set(all, PROGRESSING, ("True", reason), message.to_owned(), now);
    }
}

/// How far the rollout is.
pub(super) fn stage(
    decision: &Decision<'_>,
    set: &DaemonSet,
    status: &DaemonSetStatus,
    withheld: usize,
) -> Stage {
    Stage::of(
        decision.rollout.strategy.held(),
        (&set.status.update_revision, &status.update_revision),
        status.updated_number_scheduled < status.current_number_scheduled,
        (resting(decision, status, withheld), AVAILABLE),
        &status.conditions,
    )
}

/// Reason and message where nothing is to be done.
fn resting(
    decision: &Decision<'_>,
    status: &DaemonSetStatus,
    withheld: usize,
) -> Option<(&'static str, &'static str)> {
    let limits = decision.limits;
    let all = [
        status.current_number_scheduled,
        status.updated_number_scheduled,
        status.number_available,
    ];
    if all.iter().all(|count| *count == limits.desired) {
        return Some((AVAILABLE, "DaemonSet is available"));
    }
    if decision.rollout.strategy.paused {
        return Some((PAUSED, "DaemonSet is paused"));
    }
    let expected = limits.desired - i32::try_from(withheld).unwrap_or(i32::MAX);
    let is_open = decision.rollout.strategy.on_delete || has_candidates(decision);
    (!is_open && status.current_number_scheduled == expected && status.number_available == expected)
        .then_some((
            PARTITION_AVAILABLE,
            "DaemonSet has been paused due to partition ready",
        ))
}

/// Is there an old pod that may be updated?
fn has_candidates(decision: &Decision<'_>) -> bool {
    let allowed = decision.allowed();
    let mut old = decision.old();
    old.any(|(place, _)| place.is_eligible() && allowed.contains(place.name))
}

/// Is something left to roll out or to create that the specification does not hold? A pod that broke after it was
/// in service is not.
pub(super) fn is_unfinished(decision: &Decision<'_>, status: &DaemonSetStatus, withheld: usize) -> bool {
    if resting(decision, status, withheld).is_some() {
        return false;
    }
    let is_missing = |place: &Place<'_>| place.members.is_empty();
    let missing = decision
        .places
        .eligible()
        .filter(|place| is_missing(place))
        .count();
    let is_arriving = |member: &Member<'_>| member.is_living() && stalled::is_arriving(&member.pod);
    let moves = decision.rollout.strategy.held().is_none() && has_candidates(decision);
    let mut placed = decision.places.eligible().flat_map(|place| &place.members);
    moves || missing > withheld || placed.any(is_arriving)
}
