//! What the set reports.

use std::{fmt::Write as _, time::Duration};

use jiff::Timestamp;
use kruise_api::{
    condition::Condition,
    names::{conditions as kinds, statefulset as texts},
    statefulset::{StatefulSet, StatefulSetStatus},
};
use kruise_plan_kit::{
    EventNote, Memory, Owner, StatusPatch, Urgency, Why,
    availability::Service,
    events,
    rollout::{
        Pod, Stage as RolloutStage, conditions,
        stalled::{self, Waiting},
        unreadable,
    },
    status_patch,
};

use super::{
    decision::Decision,
    members::Member,
    progressing::{self, is_unfinished},
    resize::Stage,
    snapshot::Snapshot,
};

/// What is reported.
pub(super) struct Report {
    /// If anything changed.
    pub(super) patch: Option<StatusPatch>,
    /// How far the rollout is.
    pub(super) stage: RolloutStage,
    /// When to plan again.
    pub(super) requeue: Option<Duration>,
    /// The rollout has not moved for long, or met a node that will never let it go on.
    pub(super) events: Vec<EventNote>,
    /// Why nothing has moved for long, if that is so.
    pub(super) why: Option<Why>,
}

/// Counts pods and judges the rollout. `idle`: nothing is to be done now.
pub(super) fn report(
    snapshot: &Snapshot<'_>,
    decision: &Decision<'_>,
    collision_count: i32,
    idle: bool,
) -> Report {
    let (set, rollout, memory) = (snapshot.set, &decision.rollout, snapshot.memory);
    let now = rollout.now;
    let mut status = count(set, decision, collision_count);
    let mut all = std::mem::take(&mut status.conditions);
    let pods: Vec<Pod<'_>> = decision.slots().collect();
    let held_by = || held_by(decision, &pods, memory);
    progressing::report(decision, &status, &mut all, now);
    let failing = failures(&mut all, memory, now);
    let refused = stalled::infeasible(&pods);
    let settling = decision
        .members
        .all()
        .filter_map(|member| match member.pod.service {
            Service::Settling(left) if member.is_active() => Some(left),
            _ => None,
        });
    let settled = settling.min();
    let unfinished = set.metadata.deletion_timestamp.is_none() && is_unfinished(decision, &status);
    let waiting = Waiting {
        created: set.metadata.creation_timestamp,
        deadline: None,
        late: None,
        unfinished,
        idle,
        failing,
        settled,
        pods: snapshot.pods,
        held_by: &held_by,
    };
    let stall = stalled::report(rollout, &waiting, &mut all);
    let never = refused.map(|text| EventNote::new(&events::RESIZE_INFEASIBLE, text));
    status.conditions = conditions::without_updates(all);
    let complete = status.updated_available_replicas == decision.limits.replicas
        && status.replicas == status.updated_available_replicas;
    Report {
        patch: patch_of(rollout.owner, set, &status, complete),
        stage: progressing::stage(decision, set, &status),
        requeue: settled.into_iter().chain(stall.again).min(),
        events: stall.news.into_iter().chain(never).collect(),
        why: stall.why,
    }
}

/// What holds the set up, in words.
fn held_by(decision: &Decision<'_>, pods: &[Pod<'_>], memory: &Memory) -> String {
    let mut text = stalled::held_by(&decision.rollout, pods, memory);
    let mut add = |part: std::fmt::Arguments<'_>| {
        let comma = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{comma}{part}");
    };
    if let Some((count, example)) = decision.blocked() {
        add(format_args!(
            "{count} names are in use by others, such as {example}"
        ));
    }
    for (stage, words) in [
        (Stage::Grows, "claims of {} pods have not grown yet"),
        (
            Stage::WaitsForStart,
            "claims of {} pods have grown, and their file systems grow when these start anew",
        ),
        (Stage::Stuck, "claims of {} pods cannot follow their templates"),
    ] {
        let slots = decision.members.slots.iter();
        let is_in = |member: &&Member<'_>| decision.resize.stage(&decision.claims, member) == Some(stage);
        let count = slots.filter(is_in).count();
        if count > 0 {
            add(format_args!("{}", words.replace("{}", &count.to_string())));
        }
    }
    text
}

/// `FailedCreatePod` and `FailedUpdatePod` are there while the last attempt failed. Returns since when it has.
fn failures(all: &mut Vec<Condition>, memory: &Memory, now: Timestamp) -> Option<Timestamp> {
    let mut since = None;
    for (kind, error, prefix) in [
        (
            kinds::FAILED_CREATE_POD,
            &memory.create_error,
            texts::CREATE_FAILED,
        ),
        (
            kinds::FAILED_UPDATE_POD,
            &memory.update_error,
            texts::UPDATE_FAILED,
        ),
    ] {
        let Some(error) = error else {
            all.retain(|condition| condition.kind != kind);
            continue;
        };
        let message = format!("{prefix}{error}");
        let same = conditions::get(all, kind).is_some_and(|before| before.message == message);
        if !same {
            conditions::set(all, kind, ("True", ""), message, now);
        }
        let failing = conditions::get(all, kind).and_then(|condition| condition.last_transition_time);
        since = since.into_iter().chain(failing).min();
    }
    since
}

fn count(set: &StatefulSet, decision: &Decision<'_>, collision_count: i32) -> StatefulSetStatus {
    let rollout = &decision.rollout;
    let own = decision.members.all().filter(|member| !member.orphan);
    let counted =
        |test: &dyn Fn(&Member<'_>) -> bool| own.clone().filter(|member| test(member)).count() as i32;
    let runs_update = |member: &Member<'_>| member.pod.runs_update();
    let ready = |member: &Member<'_>| member.pod.service.is_ready();
    let available = |member: &Member<'_>| member.pod.service.is_available();
    let replicas = counted(&|_| true);
    let ready_replicas = counted(&ready);
    let updated = counted(&|member| !member.is_leaving() && runs_update(member));
    let rolls = set.spec.update_strategy.kind != "OnDelete";
    let complete = [replicas, ready_replicas, updated]
        .iter()
        .all(|count| *count == decision.limits.replicas);
    // Counted before pods are missing for a moment, the current revision would be forgotten while the partition
    // holds it.
    let rolled_out = rolls && complete;
    let current = if rolled_out {
        &rollout.update
    } else {
        &rollout.current
    };
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas,
        available_replicas: counted(&available),
        current_replicas: counted(&|member| {
            !member.is_leaving()
                && if current.name == rollout.update.name {
                    runs_update(member)
                } else {
                    member.pod.is_on(current)
                }
        }),
        updated_replicas: updated,
        updated_ready_replicas: counted(&|member| ready(member) && runs_update(member)),
        updated_available_replicas: counted(&|member| available(member) && runs_update(member)),
        current_revision: current.name.clone(),
        update_revision: rollout.update.name.clone(),
        collision_count: Some(collision_count),
        conditions: set.status.conditions.clone(),
        label_selector: set.spec.selector.to_query(),
        volume_claims: decision.resize.status(&decision.claims, own.clone()),
    }
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
    let owner = Owner::new(snapshot.api_version, "StatefulSet", &set.metadata);
    (patch_of(owner, set, &status, false), event)
}

fn patch_of(
    owner: Owner<'_>,
    set: &StatefulSet,
    status: &StatefulSetStatus,
    settled: bool,
) -> Option<StatusPatch> {
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
    let target = owner.target(kruise_api::statefulset::RESOURCE, &*set.metadata.name);
    let before = reported.then_some(&set.status);
    status_patch(target, &set.metadata.resource_version, before, status, urgency)
}
