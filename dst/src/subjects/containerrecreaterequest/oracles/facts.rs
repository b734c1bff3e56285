//! What a ContainerRecreateRequest and its pod say.

use super::super::start::POD_UID;
use crate::rules::prelude::*;

/// Finalizer of a request that keeps its pod out of service.
const FINALIZER: &str = "crr.apps.kruise.io/unready-acquired";

/// Since when the grace period of a request runs; empty if it does not.
pub(super) fn grace(request: &Object) -> &str {
    let condition = request.condition("PreRecreateGrace");
    let condition = condition.filter(|condition| condition["status"] == "True");
    condition.map_or("", |condition| text(&condition["lastTransitionTime"]))
}

/// Is it held back from its deletion?
pub(super) fn is_held(request: &Object) -> bool {
    texts(&request.metadata()["finalizers"]).any(|one| one == FINALIZER)
}

/// How the request ended.
pub(super) fn end(request: &Object) -> [Value; 3] {
    ["phase", "completionTime", "message"].map(|member| request.status()[member].clone())
}

/// What is reported of its containers.
pub(super) fn states(request: &Object) -> std::slice::Iter<'_, Value> {
    items(&request.status()["containerRecreateStates"])
}

/// Is a container dealt with?
pub(super) fn is_final(state: &Value) -> bool {
    state["phase"] == "Succeeded" || state["phase"] == "Failed"
}

/// The keys of requests that keep a pod out of service.
pub(super) fn keys(pod: &Object) -> Vec<String> {
    let condition = pod.condition("KruisePodReady");
    let condition = condition.filter(|condition| condition["status"] == "False");
    let message = condition.map_or("[]", |condition| text(&condition["message"]));
    let list: Vec<Value> = serde_json::from_str(message).unwrap_or_default();
    let own = list
        .iter()
        .filter(|hold| hold["userAgent"] == "ContainerRecreateRequest");
    own.map(|hold| text(&hold["key"]).to_owned()).collect()
}

/// Is this pod out of service for a request?
pub(super) fn has_key(pod: &Object, request: &Object) -> bool {
    keys(pod).contains(&format!("default/{}", request.name))
}

/// The newest version of the pod of a request; none if it never was.
pub(super) fn pod_of<'m>(request: &Object, mirror: &'m Mirror) -> Option<&'m Arc<Object>> {
    mirror.last(PODS, request.label(POD_UID))
}

/// The pod of a request, if it is there, has the readiness gate, and is in service as far as the request is concerned.
pub(super) fn serving<'m>(request: &Object, mirror: &'m Mirror) -> Option<&'m Arc<Object>> {
    let is_gate = |gate: &Value| gate["conditionType"] == "KruisePodReady";
    let has_gate = |pod: &Object| items(&pod.spec()["readinessGates"]).any(is_gate);
    pod_of(request, mirror).filter(|pod| !pod.is_going() && has_gate(pod) && !has_key(pod, request))
}
