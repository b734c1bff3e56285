//! What the `Progressing` condition of a StatefulSet depends on. There is no deadline, so it is always True: its
//! reason says whether something is left to do.

use jiff::Timestamp;
use kruise_api::{
    condition::Condition,
    names::conditions::PROGRESSING,
    statefulset::{StatefulSet, StatefulSetStatus},
};
use kruise_plan_kit::rollout::{Stage, conditions, stalled};

use super::decision::Decision;

/// Nothing is left to do.
const AVAILABLE: &str = "Available";
/// The update is paused.
const PAUSED: &str = "Paused";
/// All pods beyond the partition are updated and available.
const PARTITION_AVAILABLE: &str = "PartitionAvailable";
/// Something is left to do.
const UPDATED: &str = "Updated";

/// Sets the condition in `all`, if it is another one.
pub(super) fn report(
    decision: &Decision<'_>,
    status: &StatefulSetStatus,
    all: &mut Vec<Condition>,
    now: Timestamp,
) {
    let (reason, message) = resting(decision, status).unwrap_or((UPDATED, "StatefulSet is progressing"));
    let same = conditions::get(all, PROGRESSING).is_some_and(|before| before.reason == reason);
    if !same {
        conditions::set(all, PROGRESSING, ("True", reason), message.to_owned(), now);
    }
}

/// How far the rollout is.
pub(super) fn stage(decision: &Decision<'_>, set: &StatefulSet, status: &StatefulSetStatus) -> Stage {
    Stage::of(
        decision.rollout.strategy.held(),
        (&set.status.update_revision, &status.update_revision),
        status.updated_replicas < status.replicas,
        (resting(decision, status), AVAILABLE),
        &status.conditions,
    )
}

/// Reason and message where nothing is to be done.
fn resting(decision: &Decision<'_>, status: &StatefulSetStatus) -> Option<(&'static str, &'static str)> {
    let limits = decision.limits;
    let all = [
        status.replicas,
        status.updated_replicas,
        status.updated_available_replicas,
    ];
    let expected = (limits.replicas - limits.partition).max(0);
    if decision.is_claim_open() {
        return None;
    }
    if status.current_revision == status.update_revision && all.iter().all(|count| *count == limits.replicas)
    {
        Some((AVAILABLE, "StatefulSet is available"))
    } else if decision.rollout.strategy.paused {
        Some((PAUSED, "StatefulSet is paused"))
    } else if expected < limits.replicas
        && expected <= status.updated_available_replicas
        && status.replicas == limits.replicas
    {
        Some((
            PARTITION_AVAILABLE,
            "StatefulSet has been paused due to partition ready",
        ))
    } else {
        None
    }
}

/// Is something left to roll out or to scale that the specification does not hold? A pod that broke after it was in
/// service is not.
pub(super) fn is_unfinished(decision: &Decision<'_>, status: &StatefulSetStatus) -> bool {
    if resting(decision, status).is_some() {
        return false;
    }
    let limits = decision.limits;
    let moves = decision.rollout.strategy.held().is_none()
        && (status.updated_replicas < limits.replicas.saturating_sub(limits.partition)
            || decision.is_claim_open());
    moves
        || decision.members.missing(&decision.ordinals) > 0
        || !decision.members.condemned.is_empty()
        || decision.slots().any(|pod| stalled::is_arriving(&pod))
}
