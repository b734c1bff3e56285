//! Subsets that cannot take pods, where the strategy is `Adaptive`.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::{
    names::conditions::{POD_UNSCHEDULABLE, SCHEDULABLE, SUFFICIENT},
    workloadspread::{SubsetCondition, SubsetStatus, WorkloadSpreadSpec},
};
use kruise_plan_kit::jobs::{left, stored as whole_seconds};
use kruise_views::{Phase, PodView, Truth};

/// Seconds until a subset that could not take pods is tried again.
const RECOVERY: i64 = 300;

/// The state of one subset.
#[derive(Default)]
pub(super) struct Adapted<'a> {
    /// Its conditions.
    pub(super) conditions: Vec<SubsetCondition>,
    /// Its pods that wait too long for a node.
    pub(super) failed: Vec<&'a Arc<PodView>>,
    /// When something changes by the clock.
    pub(super) again: Vec<Duration>,
    /// Is it tried again from now on?
    pub(super) has_recovered: bool,
}

/// Computes the state of a subset from its pods and what is stored. Pods of the last one have nowhere to move.
pub(super) fn adapt<'a>(
    spec: &WorkloadSpreadSpec,
    is_last: bool,
    pods: &[&'a Arc<PodView>],
    stored: &SubsetStatus,
    now: Timestamp,
) -> Adapted<'a> {
    let mut adapted = Adapted::default();
    let Some(limit) = spec.reschedule_after() else {
        return adapted;
    };
    let condition = |status, reason| vec![condition(stored, status, reason, now)];
    if is_last {
        adapted.conditions = condition("True", SUFFICIENT);
        return adapted;
    }
    for pod in pods.iter().filter(|pod| waits_for_node(pod)) {
        match pod.created.and_then(|created| left(created, limit.into(), now)) {
            Some(left) => adapted.again.push(left),
            None => adapted.failed.push(pod),
        }
    }
    if !adapted.failed.is_empty() {
        adapted.again.extend([seconds(RECOVERY)]);
        adapted.conditions = condition("False", POD_UNSCHEDULABLE);
        return adapted;
    }
    if let Some(marked) = mark(stored) {
        let since = marked.last_transition_time.unwrap_or(now);
        if let Some(left) = left(since, RECOVERY, now) {
            adapted.again.push(left);
            adapted.conditions = vec![marked.clone()];
            return adapted;
        }
        adapted.has_recovered = true;
    }
    adapted.conditions = condition("True", SUFFICIENT);
    adapted
}

/// The condition that marks a subset as one that cannot take pods.
pub(super) fn mark(subset: &SubsetStatus) -> Option<&SubsetCondition> {
    let mut conditions = subset.conditions.iter();
    conditions.find(|condition| condition.kind == SCHEDULABLE && condition.status == "False")
}

/// Did the scheduler find no node for the pod?
pub(super) fn waits_for_node(pod: &PodView) -> bool {
    let is_unschedulable = pod
        .condition("PodScheduled")
        .is_some_and(|condition| condition.status == Truth::False && *condition.reason == *"Unschedulable");
    !pod.deleting && pod.phase == Phase::Pending && pod.node.is_none() && is_unschedulable
}

/// The stored condition if it says the same, else a new one.
fn condition(stored: &SubsetStatus, status: &str, reason: &str, now: Timestamp) -> SubsetCondition {
    let mut conditions = stored.conditions.iter();
    let before = conditions.find(|condition| condition.kind == SCHEDULABLE);
    let same = before.filter(|before| before.status == status);
    match same.filter(|same| same.reason == reason) {
        Some(same) => same.clone(),
        None => SubsetCondition {
            kind: SCHEDULABLE.to_owned(),
            status: status.to_owned(),
            observed_generation: None,
            last_transition_time: same
                .and_then(|same| same.last_transition_time)
                .or_else(|| Some(whole_seconds(now))),
            reason: reason.to_owned(),
            message: String::new(),
        },
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.unsigned_abs())
}
