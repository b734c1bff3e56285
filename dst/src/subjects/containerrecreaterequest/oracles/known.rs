//! What requests and pods say.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::engine::oracles::{Mirror, Object, PODS, Write};
use crate::subjects::containerrecreaterequest::{request::POD_UID, start::REQUESTS};

/// Finalizer of a request that keeps its pod out of service.
pub const FINALIZER: &str = "crr.apps.kruise.io/unready-acquired";

/// Has the request ended?
pub fn has_ended(request: &Object) -> bool {
    !request.value()["status"]["completionTime"].is_null()
}

/// Since when the grace period of a request runs; empty if it does not.
pub fn grace(request: &Object) -> &str {
    let condition = request.condition("PreRecreateGrace");
    let condition = condition.filter(|condition| condition["status"] == "True");
    condition.map_or("", |condition| {
        condition["lastTransitionTime"].as_str().unwrap_or_default()
    })
}

/// Does it have the finalizer?
pub fn is_held(request: &Object) -> bool {
    let finalizers = request.value()["metadata"]["finalizers"].as_array();
    finalizers.into_iter().flatten().any(|one| one == FINALIZER)
}

/// Is this pod out of service for the request of this name?
pub fn has_key(pod: &Object, request: &str) -> bool {
    keys(pod).iter().any(|key| *key == format!("default/{request}"))
}

/// The keys of requests that keep a pod out of service.
pub fn keys(pod: &Object) -> Vec<String> {
    let condition = pod
        .condition("KruisePodReady")
        .filter(|condition| condition["status"] == "False");
    let message = condition.and_then(|condition| condition["message"].as_str());
    let list: Vec<Value> = serde_json::from_str(message.unwrap_or("[]")).unwrap_or_default();
    let own = list
        .iter()
        .filter(|hold| hold["userAgent"] == "ContainerRecreateRequest");
    own.filter_map(|hold| hold["key"].as_str().map(str::to_owned))
        .collect()
}

/// Does the pod have the readiness gate?
pub fn has_gate(pod: &Object) -> bool {
    let gates = pod.value()["spec"]["readinessGates"].as_array();
    gates
        .into_iter()
        .flatten()
        .any(|gate| gate["conditionType"] == "KruisePodReady")
}

/// The newest version of the pod of a request; none if it never was.
pub fn pod_of<'m>(request: &Object, mirror: &'m Mirror) -> Option<&'m Arc<Object>> {
    let uid = request.label(POD_UID);
    mirror.of(PODS).objects.get(uid)?.last()
}

/// Was the pod there before a write, and not being deleted?
pub fn is_there(request: &Object, mirror: &Mirror) -> bool {
    pod_of(request, mirror).is_some_and(|pod| !pod.gone && !pod.is_going())
}

/// The request before a write to it, and after.
pub fn change<'m>(write: &Write<'_>, mirror: &'m Mirror) -> Option<[&'m Arc<Object>; 2]> {
    let log = mirror.of(REQUESTS);
    let versions = log.changed_at(write.marks.of(REQUESTS))?;
    let version = log.changes.get(write.marks.of(REQUESTS))?.version;
    let place = versions.iter().position(|one| one.version == version)?;
    Some([versions.get(place.checked_sub(1)?)?, versions.get(place)?])
}

/// So many seconds after a stored time.
pub fn after(time: &Value, seconds: &Value) -> Option<Timestamp> {
    let time: Timestamp = time.as_str()?.parse().ok()?;
    time.checked_add(SignedDuration::from_secs(seconds.as_i64()?))
        .ok()
}
