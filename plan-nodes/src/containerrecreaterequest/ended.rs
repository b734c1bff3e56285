//! What is removed when a request has ended or is being deleted.

use jiff::Timestamp;
use kruise_api::names::containerrecreaterequest::{ACTIVE, READINESS_WRITER, UNREADY_FINALIZER};
use kruise_plan_kit::{
    Intent, ObjectWrites, Part, Patch, Phase, Plan, Precondition, Step, Write, finalizers,
    injected::is_injected,
    jobs,
    pod_writes::{self, Guard},
    put, readiness,
};
use serde_json::{Value, json};

use super::snapshot::Snapshot;

/// A request that has ended is of no interest to its node any more, and holds nothing.
const RELEASE_REQUEST: Intent = Intent::of_update("release-request");

/// Puts the pod back into service, releases the request, and deletes it when its time to live is over.
pub(super) fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let mut steps = Vec::new();
    if is_holding(snapshot) {
        steps.extend(free_pod(snapshot, now));
    }
    steps.extend(release(snapshot));
    if let Some(ended) = until_deletion(snapshot) {
        let (end, seconds) = ended;
        match jobs::left(end, seconds, now) {
            None => steps = delete(snapshot, steps),
            left => plan.requeue_after(left),
        }
    }
    if !steps.is_empty() {
        plan.writes.push(ObjectWrites::new(Phase::Cleanup, steps));
    }
    plan
}

fn is_holding(snapshot: &Snapshot<'_>) -> bool {
    let mut finalizers = snapshot.request.metadata.finalizers.iter();
    finalizers.any(|one| one == UNREADY_FINALIZER)
}

/// Takes the key from the pod, if the pod has it.
fn free_pod(snapshot: &Snapshot<'_>, now: Timestamp) -> Option<Step> {
    if is_injected("RequestKeyLeft") {
        return None;
    }
    let pod = snapshot.own_pod()?;
    let ready = readiness::release(pod, READINESS_WRITER, &snapshot.readiness_key(), now);
    if ready.is_empty() {
        return None;
    }
    let body = json!({"status": {"conditions": ready}});
    let (intent, part) = (Intent::MARK_READY, Part::Status);
    let reason = "the request that kept it out of service is over";
    Some(pod_writes::patch(
        pod,
        intent,
        part,
        body,
        Guard::Unchanged,
        reason,
    ))
}

/// Removes the finalizer, and the label by which agents find requests. One that is being deleted needs no label
/// removed.
fn release(snapshot: &Snapshot<'_>) -> Option<Step> {
    let metadata = &snapshot.request.metadata;
    let mut patch = json!({});
    let mut precondition = Precondition::Uid(metadata.uid.clone());
    let mut reason = "agents do not watch it any more";
    if metadata.deletion_timestamp.is_none() && metadata.labels.contains_key(ACTIVE) {
        put(&mut patch, &["metadata", "labels", ACTIVE], Value::Null);
    }
    if let Some(others) = finalizers::changed(metadata, UNREADY_FINALIZER, false) {
        put(&mut patch, &["metadata", "finalizers"], json!(others));
        precondition = jobs::unchanged(metadata);
        reason = "it keeps no pod out of service any more";
    }
    patch.get("metadata")?;
    let write = Write::Patch {
        intent: RELEASE_REQUEST,
        target: snapshot.target(),
        part: Part::Main,
        patch: Patch::Merge(patch),
        precondition,
    };
    Some(Step::new(write, reason))
}

/// When the request ended, and how many seconds it is kept after that; `None` if it is kept, or is being deleted
/// already.
pub(super) fn until_deletion(snapshot: &Snapshot<'_>) -> Option<(Timestamp, i64)> {
    let request = snapshot.request;
    if request.metadata.deletion_timestamp.is_some() {
        return None;
    }
    Some((
        request.status.completion_time?,
        request.spec.ttl_seconds_after_finished?,
    ))
}

/// The deletion, after the steps that it needs: without a finalizer there are none.
fn delete(snapshot: &Snapshot<'_>, mut steps: Vec<Step>) -> Vec<Step> {
    let metadata = &snapshot.request.metadata;
    let precondition = if is_holding(snapshot) {
        Precondition::VersionFromPreviousStep(metadata.uid.clone())
    } else {
        steps.clear();
        Precondition::Uid(metadata.uid.clone())
    };
    let write = Write::Delete {
        intent: Intent::DELETE_JOB,
        target: snapshot.target(),
        precondition,
    };
    steps.push(Step::new(write, "ttlSecondsAfterFinished is over"));
    steps
}
