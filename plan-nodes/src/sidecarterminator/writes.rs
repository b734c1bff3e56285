//! The writes: to the pod, and requests to the agent of its node.

use jiff::Timestamp;
use kruise_api::{
    containerrecreaterequest::{ContainerRecreateRequest, phase},
    names::{conditions::SIDECAR_TERMINATED, sidecarterminator::TERMINATED_MESSAGE},
};
use kruise_plan_kit::{
    EventNote, FailureNote, Intent, Part, Patch, PodChange, Precondition, Step, Target, Write,
    lifecycle::go_time,
    pod_writes::{self, Guard},
};
use kruise_views::{MarkedSidecar, PodView};
use serde_json::{Value, json};

use super::groups::names;
use super::reasons;

/// The agent of a node is asked to stop sidecars of a pod whose main containers have ended.
const REQUEST_TERMINATION: Intent = Intent::of_update("request-termination");
/// Such a request is ended: it has done what it could, and another one is needed.
const END_REQUEST: Intent = Intent::of_update("end-request");
/// Sidecars of such a pod get the image of a program that ends at once.
const SWAP_IMAGES: Intent = Intent::of_update("swap-images").of_pod(PodChange::Updated);
/// Such a pod has ended, whatever its sidecars end with.
const END_POD: Intent = Intent::of_update("end-pod").of_pod(PodChange::Ended);

/// How long a further request is kept after its end, in seconds. The first one is kept with its pod, as OpenKruise
/// keeps it.
const KEPT: i64 = 3600;

/// The sidecars get the images that they name.
pub(super) fn swap(pod: &PodView, sidecars: &[&MarkedSidecar]) -> Step {
    let containers = sidecars
        .iter()
        .map(|one| json!({"name": &*one.name, "image": &*one.image}));
    let body = json!({"spec": {"containers": containers.collect::<Vec<Value>>()}});
    let reason = "its main containers have ended";
    let (intent, part) = (SWAP_IMAGES, Part::Main);
    Step {
        done: Some(event(sidecars, "in-place update")),
        ..pod_writes::patch(pod, intent, part, body, Guard::SamePod, reason)
    }
}

/// The pod has ended as its main containers have. Not if its node has reported something else meanwhile.
pub(super) fn end_pod(pod: &PodView, have_succeeded: bool, now: Timestamp) -> Step {
    let phase = if have_succeeded { "Succeeded" } else { "Failed" };
    let body = json!({"status": {
        "phase": phase,
        "conditions": [{
            "type": SIDECAR_TERMINATED, "status": "True", "message": TERMINATED_MESSAGE,
            "lastTransitionTime": go_time(now),
        }],
    }});
    let reason = "the exit codes of the sidecars that are left do not count";
    let (intent, part) = (END_POD, Part::Status);
    pod_writes::patch(pod, intent, part, body, Guard::Unchanged, reason)
}

/// A request for these sidecars. It is owned by the pod, and deleted with it.
pub(super) fn request(pod: &PodView, name: &str, sidecars: &[&MarkedSidecar], is_first: bool) -> Step {
    let containers = sidecars.iter().map(|one| json!({"name": &*one.name}));
    let mut spec = json!({
        "podName": &*pod.name,
        "containers": containers.collect::<Vec<Value>>(),
        "strategy": {"forceRecreate": true, "failurePolicy": "Ignore"},
    });
    if let Some(spec) = spec.as_object_mut().filter(|_| !is_first) {
        spec.insert("ttlSecondsAfterFinished".to_owned(), KEPT.into());
    }
    let body = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ContainerRecreateRequest",
        "metadata": {
            "name": name,
            "namespace": &*pod.namespace,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": &*pod.name, "uid": &*pod.uid, "controller": true,
            }],
        },
        "spec": spec,
    });
    let write = Write::Create {
        intent: REQUEST_TERMINATION,
        target: target(&pod.namespace, name),
        body: body.into(),
        owner_uid: Some(pod.uid.to_string()),
    };
    let prefix = format!("sidecar [{}] is not terminated yet: ", names(sidecars).join(" "));
    Step {
        done: Some(event(sidecars, "crr")),
        failed: Some(FailureNote::new(&reasons::SIDECAR_NOT_TERMINATED, prefix)),
        ..Step::new(write, "its main containers have ended")
    }
}

/// Ends a request that has stopped what it could and waits for containers that are not to come back.
pub(super) fn end_request(request: &ContainerRecreateRequest, now: Timestamp) -> Step {
    let metadata = &request.metadata;
    let status = json!({
        "phase": phase::COMPLETED,
        "completionTime": go_time(now),
        "message": "its containers were stopped, and others are to be",
    });
    let write = Write::Patch {
        intent: END_REQUEST,
        target: target(&metadata.namespace, &metadata.name),
        part: Part::Status,
        patch: Patch::Merge(json!({ "status": status })),
        precondition: Precondition::UidAndVersion(metadata.uid.clone(), metadata.resource_version.clone()),
    };
    Step::new(write, "its containers were stopped")
}

fn event(sidecars: &[&MarkedSidecar], way: &str) -> EventNote {
    let list = names(sidecars).join(" ");
    let text = format!("Kruise SidecarTerminator is trying to terminate sidecar [{list}] using {way}");
    EventNote::new(&reasons::SIDECAR_TERMINATOR, text)
}

fn target(namespace: &str, name: &str) -> Target {
    Target {
        resource: kruise_api::containerrecreaterequest::RESOURCE,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}
