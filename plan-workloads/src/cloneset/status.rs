//! What the set reports.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::{
    cloneset::{CloneSet, CloneSetStatus},
    names::conditions as kinds,
};
use kruise_plan_kit::{
    EventNote, Owner, StatusPatch, Urgency, Why,
    availability::Service,
    events,
    injected::is_injected,
    rollout::{
        Pod, Rollout, Stage, conditions,
        progressing::deadline,
        stalled::{self, Waiting},
        unreadable,
    },
    status_patch,
};

use super::{
    numbers::Limits,
    progressing::{is_unfinished, progressing, stage},
    snapshot::Snapshot,
};

/// What is reported.
pub(super) struct Report {
    /// If anything changed.
    pub(super) patch: Option<StatusPatch>,
    /// How far the rollout is.
    pub(super) stage: Stage,
    /// When to plan again.
    pub(super) requeue: Option<Duration>,
    /// The rollout's deadline has just passed, or it met a node that will never let it go on.
    pub(super) events: Vec<EventNote>,
    /// Why nothing has moved for long, if that is so.
    pub(super) why: Option<Why>,
}

/// Counts pods and judges the rollout. `idle`: nothing is to be done now.
pub(super) fn report(
    snapshot: &Snapshot<'_>,
    rollout: &Rollout<'_>,
    limits: Limits,
    collision_count: i32,
    pods: &[Pod<'_>],
    idle: bool,
) -> Report {
    let (set, now, memory) = (snapshot.set, rollout.now, snapshot.memory);
    let mut status = count(set, rollout, collision_count, pods);
    let held_by = || stalled::held_by(rollout, pods, memory);
    let refused = stalled::infeasible(pods);
    let progress = progressing(set, &mut status, now);
    let never = refused
        .as_deref()
        .filter(|_| !conditions::is_true(&status.conditions, kinds::FAILED_UPDATE));
    let failing = conditions::failures(&mut status.conditions, memory, refused.as_ref(), now);
    let settling = pods.iter().filter_map(|pod| match pod.service {
        Service::Settling(left) => Some(left),
        _ => None,
    });
    let settled = settling.min();
    let deadline = deadline(set.spec.progress_deadline_seconds);
    let waiting = Waiting {
        created: set.metadata.creation_timestamp,
        deadline,
        late: progress.late,
        unfinished: is_unfinished(set, rollout, limits, &status, pods),
        idle,
        failing,
        settled,
        pods: snapshot.pods,
        held_by: &held_by,
    };
    let stall = stalled::report(rollout, &waiting, &mut status.conditions);
    let never = never.map(|text| EventNote::new(&events::RESIZE_INFEASIBLE, text));
    Report {
        patch: patch(rollout, set, &status),
        stage: stage(rollout, set, &status),
        requeue: settled.into_iter().chain(progress.again).chain(stall.again).min(),
        events: stall.news.into_iter().chain(never).collect(),
        why: stall.why,
    }
}

fn count(set: &CloneSet, rollout: &Rollout<'_>, collision_count: i32, pods: &[Pod<'_>]) -> CloneSetStatus {
    let budget = rollout.budget;
    let matching = |test: &dyn Fn(&Pod<'_>) -> bool| pods.iter().filter(|pod| test(pod)).count() as i32;
    let mut updated = matching(&|pod| pod.runs_update());
    let mut replicas = pods.len() as i32;
    if is_injected("StatusBeforePods") {
        replicas = budget.replicas;
        updated = budget.replicas - budget.partition;
    }
    // Pods that the partition takes back need the revision they go back to, though all have left it.
    let goes_back = rollout.options.goes_back && budget.partition > 0;
    let rolled_out = updated == replicas && replicas == budget.replicas && !goes_back;
    let current = if rolled_out {
        &rollout.update
    } else {
        &rollout.current
    };
    let rolling = set.spec.update_strategy.rolling_update.as_ref();
    let kept = rolling.map_or(0, |_| budget.partition);
    CloneSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: matching(&|pod| pod.service.is_ready()),
        available_replicas: matching(&|pod| pod.service.is_available()),
        updated_replicas: updated,
        updated_ready_replicas: matching(&|pod| pod.runs_update() && pod.service.is_ready()),
        updated_available_replicas: matching(&|pod| pod.runs_update() && pod.service.is_available()),
        expected_updated_replicas: budget.replicas - kept,
        update_revision: rollout.update.name.clone(),
        current_revision: current.name.clone(),
        collision_count: Some(collision_count),
        conditions: set.status.conditions.clone(),
        label_selector: set.spec.selector.to_query(),
    }
}

fn patch(rollout: &Rollout<'_>, set: &CloneSet, status: &CloneSetStatus) -> Option<StatusPatch> {
    let settled = status.updated_available_replicas == set.spec.replicas.unwrap_or(1)
        && status.replicas == status.updated_available_replicas;
    patch_of(rollout.owner, set, status, settled)
}

/// The status of a set that cannot be read: counts stay as they were reported.
pub(super) fn unreadable(
    snapshot: &Snapshot<'_>,
    problem: &str,
    now: Timestamp,
) -> (Option<StatusPatch>, EventNote) {
    let set = snapshot.set;
    let mut status = set.status.clone();
    status.observed_generation = set.metadata.generation;
    let event = unreadable::report(&mut status.conditions, problem, now);
    let owner = Owner::new(snapshot.api_version, "CloneSet", &set.metadata);
    (patch_of(owner, set, &status, false), event)
}

fn patch_of(owner: Owner<'_>, set: &CloneSet, status: &CloneSetStatus, settled: bool) -> Option<StatusPatch> {
    let reported = set.status.observed_generation > 0;
    let urgency = Urgency {
        members: &[
            "observedGeneration",
            "updateRevision",
            "currentRevision",
            "conditions",
            "labelSelector",
        ],
        settled,
    };
    let target = owner.target(kruise_api::cloneset::RESOURCE, &*set.metadata.name);
    let before = reported.then_some(&set.status);
    status_patch(target, &set.metadata.resource_version, before, status, urgency)
}
