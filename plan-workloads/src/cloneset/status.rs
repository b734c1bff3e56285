//! What the set reports.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::cloneset::{CloneSet, CloneSetStatus, Condition};
use kruise_api::names::conditions;
use kruise_plan_kit::{
    EventNote, Memory, ResourceId, StatusPatch, Target,
    availability::Service,
    injected::{Bug, is_injected},
};
use serde_json::{Map, Value, json};

use super::{
    history::{Found, Revisions},
    members::{Member, Side},
    numbers::Limits,
    observe::Observed,
    progressing::{is_unfinished, progressing},
    stall::{self, Quiet},
};

/// What is told.
pub(super) struct Report {
    /// If anything changed.
    pub(super) patch: Option<StatusPatch>,
    /// When to look again.
    pub(super) requeue: Option<Duration>,
    /// The rollout's deadline has just passed, or it met a node that will never let it go on.
    pub(super) events: Vec<EventNote>,
    /// When something last moved, if something is left to do that nobody holds on purpose, and nothing is done now, or
    /// since when what is done has been refused.
    pub(super) waits_since: Option<Timestamp>,
}

/// Counts pods and judges the rollout. `idle` says that nothing is to be done now.
pub(super) fn report(
    observed: &Observed<'_>,
    found: &Found,
    members: &[Member<'_>],
    limits: Limits,
    idle: bool,
    now: Timestamp,
) -> Report {
    let set = observed.set;
    let mut status = count(observed, &found.revisions, members, limits);
    let held_by = || stall::held_by(set, members, observed.memory);
    let progress = progressing(set, &mut status, &held_by, now);
    let refused = stall::infeasible(members);
    let news = refused
        .as_ref()
        .filter(|_| !is_true(&status, conditions::FAILED_UPDATE));
    let news = news.map(|text| stall::never(text));
    failures(&mut status, observed.memory, refused.as_ref(), now);
    let settling = members.iter().filter_map(|member| match member.service {
        Service::Settling(left) => Some(left),
        _ => None,
    });
    let settled = settling.min();
    let quiet = if is_unfinished(set, &status) {
        let failing = stall::failing_since(&status, observed.memory);
        let waits = (idle || failing.is_some()) && settled.is_none();
        let moved = || stall::last_move(set, found.update_created(), observed.pods, now);
        Quiet::of(&status, waits, failing, moved)
    } else {
        Quiet::default()
    };
    let stall = stall::stalled(set, &mut status, &quiet, &held_by, now);
    let late = progress.exceeded.or(stall.news);
    Report {
        patch: patch(set, &status),
        requeue: settled.into_iter().chain(progress.again).chain(stall.again).min(),
        events: late
            .as_deref()
            .map(stall::event)
            .into_iter()
            .chain(news)
            .collect(),
        waits_since: quiet.since,
    }
}

fn count(
    observed: &Observed<'_>,
    revisions: &Revisions,
    members: &[Member<'_>],
    limits: Limits,
) -> CloneSetStatus {
    let set = observed.set;
    let matching = |test: &dyn Fn(&Member<'_>) -> bool| members.iter().filter(|m| test(m)).count() as i32;
    let new = |member: &Member<'_>| member.side == Side::New;
    let mut updated = matching(&new);
    let mut replicas = members.len() as i32;
    if is_injected(Bug::StatusBeforePods) {
        replicas = limits.replicas;
        updated = limits.replicas - limits.partition;
    }
    // Pods that the partition takes back need the revision they go back to, though all have left it.
    let goes_back = observed.options.partition_rollback && limits.partition > 0;
    let rolled_out = updated == replicas && replicas == limits.replicas && !goes_back;
    let current = if rolled_out {
        &revisions.update
    } else {
        &revisions.current
    };
    let expected = if set.spec.update_strategy.rolling_update.is_some() {
        limits.partition
    } else {
        0
    };
    CloneSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: matching(&|member| member.service.is_ready()),
        available_replicas: matching(&|member| member.service.is_available()),
        updated_replicas: updated,
        updated_ready_replicas: matching(&|member| new(member) && member.service.is_ready()),
        updated_available_replicas: matching(&|member| new(member) && member.service.is_available()),
        expected_updated_replicas: limits.replicas - expected,
        update_revision: revisions.update.name.clone(),
        current_revision: current.name.clone(),
        collision_count: Some(revisions.collision_count),
        conditions: set.status.conditions.clone(),
        label_selector: set.spec.selector.to_query(),
    }
}

fn is_true(status: &CloneSetStatus, kind: &str) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|condition| condition.kind == kind && condition.status == "True")
}

/// `FailedScale` and `FailedUpdate` say what the last attempt ran into, and turn False when it is over. An update has also
/// failed where a node can never give what it asks for.
fn failures(status: &mut CloneSetStatus, memory: &Memory, refused: Option<&String>, now: Timestamp) {
    for (kind, error) in [
        (conditions::FAILED_SCALE, memory.scale_error.as_ref()),
        (
            conditions::FAILED_UPDATE,
            memory.update_error.as_ref().or(refused),
        ),
    ] {
        let slot = status
            .conditions
            .iter_mut()
            .find(|condition| condition.kind == kind);
        let wanted = match error {
            Some(error) => ("True", conditions::LAST_ATTEMPT_FAILED, error.clone()),
            None => ("False", conditions::RECOVERED, String::new()),
        };
        match slot {
            None if error.is_none() => {}
            Some(slot) if (slot.status == wanted.0) && slot.message == wanted.2 => {}
            slot => {
                let changed = slot.as_ref().is_none_or(|slot| slot.status != wanted.0);
                let since = slot.as_ref().and_then(|slot| slot.last_transition_time);
                let condition = Condition {
                    kind: kind.into(),
                    status: wanted.0.into(),
                    last_update_time: Some(now),
                    last_transition_time: if changed { Some(now) } else { since },
                    reason: wanted.1.into(),
                    message: wanted.2,
                };
                match slot {
                    Some(slot) => *slot = condition,
                    None => status.conditions.push(condition),
                }
            }
        }
    }
}

/// A merge patch of the members that differ from what is stored. The first report names every member: the server
/// demands the counts, zero or not.
fn patch(set: &CloneSet, status: &CloneSetStatus) -> Option<StatusPatch> {
    let reported = set.status.observed_generation > 0;
    let before = if reported { object(&set.status) } else { Map::new() };
    let after = object(status);
    let changed: Map<String, Value> = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .map(clone_pair)
        .collect();
    let removed = before
        .keys()
        .filter(|key| !after.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let changed: Map<String, Value> = changed.into_iter().chain(removed).collect();
    if changed.is_empty() {
        return None;
    }
    let weighty = [
        "observedGeneration",
        "updateRevision",
        "currentRevision",
        "conditions",
        "labelSelector",
    ];
    let urgent = weighty.iter().any(|key| changed.contains_key(*key)) || settled(set, status);
    Some(StatusPatch {
        target: Target {
            resource: ResourceId::CLONESETS,
            namespace: set.metadata.namespace.clone(),
            name: set.metadata.name.clone(),
        },
        version: set.metadata.resource_version.clone(),
        patch: json!({"status": changed}),
        urgent,
    })
}

/// Everything wanted is there: people and autoscalers wait for this one.
fn settled(set: &CloneSet, status: &CloneSetStatus) -> bool {
    status.updated_available_replicas == set.spec.replicas.unwrap_or(1)
        && status.replicas == status.updated_available_replicas
}

fn object(status: &CloneSetStatus) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn clone_pair((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}
