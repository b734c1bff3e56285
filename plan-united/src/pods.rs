//! The pods of a workload.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::names::{conditions, uniteddeployment::SUBSET_REVISION};
use kruise_plan_kit::jobs::left;
use kruise_views::{Phase, PodView, Truth};

/// Is the pod of this revision?
pub(crate) fn is_of(pod: &PodView, revision: &str) -> bool {
    pod.labels.get(SUBSET_REVISION) == Some(revision)
}

/// Is the pod Ready?
pub(crate) fn is_ready(pod: &PodView) -> bool {
    pod.is_true(conditions::READY)
}

/// Whether a pod has waited too long for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// It waits for none, or the scheduler has not tried it.
    No,
    /// It waits, and may do so for this long.
    For(Duration),
    /// It waits for too long.
    TooLong,
}

/// How long the pod has waited for a node, of `limit` seconds since its creation.
pub(crate) fn pending(pod: &PodView, limit: i64, now: Timestamp) -> Pending {
    let condition = pod.condition("PodScheduled");
    let is_unschedulable = condition
        .is_some_and(|condition| condition.status == Truth::False && *condition.reason == *"Unschedulable");
    let waits = !pod.deleting && pod.phase == Phase::Pending && pod.node.is_none() && is_unschedulable;
    match pod.created.filter(|_| waits) {
        None => Pending::No,
        Some(created) => left(created, limit, now).map_or(Pending::TooLong, Pending::For),
    }
}
