//! What the set reports.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::daemonset::{DaemonSet, DaemonSetStatus};
use kruise_plan_kit::{
    EventNote, Owner, StatusPatch, Urgency, Why,
    availability::{Service, service_in},
    events,
    lifecycle::State,
    rollout::{
        Pod, Stage, conditions,
        stalled::{self, Waiting},
        unreadable,
    },
    status_patch,
};

use super::{
    decision::Decision,
    places::Member,
    progressing::{self, is_unfinished},
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
    /// The rollout has not moved for long, or met a node that will never let it go on.
    pub(super) events: Vec<EventNote>,
    /// Why nothing has moved for long, if that is so.
    pub(super) why: Option<Why>,
}

/// What the plan has found out so far.
pub(super) struct Round {
    /// Collisions of revision names.
    pub(super) collision_count: i32,
    /// Nodes that get no pod because of the partition.
    pub(super) withheld: usize,
    /// Nothing is to be done now.
    pub(super) idle: bool,
}

/// Counts nodes and judges the rollout.
pub(super) fn report(snapshot: &Snapshot<'_>, decision: &Decision<'_>, round: &Round) -> Report {
    let (set, rollout, memory) = (snapshot.set, &decision.rollout, snapshot.memory);
    let now = rollout.now;
    let mut status = count(set, decision, round.collision_count);
    let mut all = std::mem::take(&mut status.conditions);
    let pods: Vec<Pod<'_>> = decision.active().collect();
    let held_by = || stalled::held_by(&decision.rollout, &pods, memory);
    progressing::report(decision, &status, round.withheld, &mut all, now);
    let refused = stalled::infeasible(&pods);
    let failing = conditions::failures(&mut all, memory, refused.as_ref(), now);
    let settling = pods.iter().filter_map(|pod| match pod.service {
        Service::Settling(left) => Some(left),
        _ => None,
    });
    let settled = settling.min();
    let waiting = Waiting {
        created: set.metadata.creation_timestamp,
        deadline: None,
        late: None,
        unfinished: is_unfinished(decision, &status, round.withheld),
        idle: round.idle,
        failing,
        settled,
        pods: snapshot.pods,
        held_by: &held_by,
    };
    let stall = stalled::report(rollout, &waiting, &mut all);
    let never = refused.map(|text| EventNote::new(&events::RESIZE_INFEASIBLE, text));
    status.conditions = conditions::without_updates(all);
    let counts = [status.updated_number_scheduled, status.number_available];
    let complete = counts
        .iter()
        .all(|count| *count == status.desired_number_scheduled);
    Report {
        patch: patch_of(rollout.owner, set, &status, complete),
        stage: progressing::stage(decision, set, &status, round.withheld),
        requeue: settled.into_iter().chain(stall.again).min(),
        events: stall.news.into_iter().chain(never).collect(),
        why: stall.why,
    }
}

fn count(set: &DaemonSet, decision: &Decision<'_>, collision_count: i32) -> DaemonSetStatus {
    let rollout = &decision.rollout;
    let known = set.status.collision_count.is_some() || collision_count > 0;
    let mut status = DaemonSetStatus {
        desired_number_scheduled: decision.limits.desired,
        observed_generation: set.metadata.generation,
        collision_count: known.then_some(collision_count),
        conditions: set.status.conditions.clone(),
        update_revision: rollout.label_of(&rollout.update).to_owned(),
        ..DaemonSetStatus::default()
    };
    status.number_misscheduled = decision.places.misscheduled().count() as i32;
    for place in decision.places.eligible() {
        let Some(first) = place.counted() else {
            continue;
        };
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(first.pod.view.is_true("Ready"));
        status.number_available += i32::from(is_available(decision, first));
        status.updated_number_scheduled += i32::from(first.pod.runs_update());
    }
    status.number_unavailable = status.desired_number_scheduled - status.number_available;
    status
}

/// Does it serve? A pod that is held before its deletion does, as long as it is Ready.
fn is_available(decision: &Decision<'_>, member: &Member<'_>) -> bool {
    let service = if member.is_prepared() {
        let seconds = decision.limits.min_ready_seconds;
        service_in(State::None, member.pod.view, seconds, decision.rollout.now)
    } else {
        member.pod.service
    };
    service.is_available()
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
    status.conditions = conditions::without_updates(status.conditions);
    let owner = Owner::new(snapshot.api_version, "DaemonSet", &set.metadata);
    (patch_of(owner, set, &status, false), event)
}

fn patch_of(
    owner: Owner<'_>,
    set: &DaemonSet,
    status: &DaemonSetStatus,
    settled: bool,
) -> Option<StatusPatch> {
    let reported = set.status.observed_generation > 0;
    let urgency = Urgency {
        members: &["observedGeneration", "updateRevision", "conditions"],
        settled,
    };
    let target = owner.target(kruise_api::daemonset::RESOURCE, &*set.metadata.name);
    let before = reported.then_some(&set.status);
    status_patch(target, &set.metadata.resource_version, before, status, urgency)
}
