//! What requests and pods say.

use super::super::request::POD_UID;
use crate::rules::prelude::*;

/// Finalizer of a request that keeps its pod out of service.
const FINALIZER: &str = "crr.apps.kruise.io/unready-acquired";

/// Has the request ended?
pub fn has_ended(request: &Object) -> bool {
    !request.value()["status"]["completionTime"].is_null()
}

/// Since when the grace period of a request runs; empty if it does not.
pub fn grace(request: &Object) -> &str {
    let condition = request.condition("PreRecreateGrace");
    let condition = condition.filter(|condition| condition["status"] == "True");
    condition.map_or("", |condition| text(&condition["lastTransitionTime"]))
}

/// Does it have the finalizer?
pub fn is_held(request: &Object) -> bool {
    items(&request.value()["metadata"]["finalizers"]).any(|one| one == FINALIZER)
}

/// Is this pod out of service for the request of this name?
pub fn has_key(pod: &Object, request: &str) -> bool {
    keys(pod).iter().any(|key| *key == format!("default/{request}"))
}

/// How the request ended.
pub fn end(request: &Object) -> [Value; 3] {
    ["phase", "completionTime", "message"].map(|member| request.value()["status"][member].clone())
}

/// What is reported of its containers.
pub fn states(request: &Object) -> std::slice::Iter<'_, Value> {
    items(&request.value()["status"]["containerRecreateStates"])
}

/// The keys of requests that keep a pod out of service.
pub fn keys(pod: &Object) -> Vec<String> {
    let condition = pod.condition("KruisePodReady");
    let condition = condition.filter(|condition| condition["status"] == "False");
    let message = condition.map_or("[]", |condition| text(&condition["message"]));
    let list: Vec<Value> = serde_json::from_str(message).unwrap_or_default();
    let own = list
        .iter()
        .filter(|hold| hold["userAgent"] == "ContainerRecreateRequest");
    own.map(|hold| text(&hold["key"]).to_owned()).collect()
}

/// Does the pod have the readiness gate?
pub fn has_gate(pod: &Object) -> bool {
    items(&pod.value()["spec"]["readinessGates"]).any(|gate| gate["conditionType"] == "KruisePodReady")
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
