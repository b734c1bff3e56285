//! The oracle's eyes on resources that change in place.

use kruise_plan_kit::Write;
use serde_json::Value;

use crate::{
    oracle,
    world::{World, condition, uid_of},
};

/// What the containers of a pod, or of a template, ask for.
pub(crate) fn asked(pod: &Value) -> Vec<Value> {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    containers
        .iter()
        .map(|container| container["resources"].clone())
        .collect()
}

/// What a pod's node gives its containers.
fn given(pod: &Value) -> Vec<Value> {
    let statuses = pod["status"]["containerStatuses"].as_array();
    statuses
        .into_iter()
        .flatten()
        .map(|status| status["resources"].clone())
        .collect()
}

/// Containers are told before the pod is; those that restart for it serve nobody meanwhile.
pub(crate) fn assert_resize(before: &World, world: &mut World, write: &Write) {
    let name = &write.target().name;
    let (pod, changed) = (&before.pods[name], &world.pods[name]);
    let memory = |pod: &Value| -> Vec<Value> {
        let amounts = asked(pod);
        amounts
            .iter()
            .map(|amounts| amounts["limits"]["memory"].clone())
            .collect()
    };
    if memory(pod) != memory(changed) && pod["spec"]["readinessGates"].is_array() {
        let marked = condition(pod, "InPlaceUpdateReady");
        assert_eq!(marked, Some("False"), "{write} restarts a pod that is not marked");
    }
    assert_ne!(asked(pod), asked(changed), "{write} changes nothing");
    let label = |pod: &Value| pod["metadata"]["labels"].clone();
    assert_eq!(label(pod), label(changed));
    let uid = uid_of(changed);
    world.resized.insert(uid);
}

/// A pod whose resources changed is said to have arrived only when its containers have what they ask for. Another change may
/// arrive before any of them started.
pub(crate) fn assert_given(before: &World, after: &World, write: &Write) {
    let name = &write.target().name;
    let state =
        |world: &World| world.pods[name]["metadata"]["labels"]["lifecycle.apps.kruise.io/state"].clone();
    let progress = &before.pods[name]["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"];
    let resized = progress
        .as_str()
        .is_some_and(|text| text.contains(r#""updateResources":true"#));
    if resized && state(before) == "Updating" && state(after) != "Updating" {
        let pod = &after.pods[name];
        assert_eq!(
            given(pod),
            asked(pod),
            "{write} comes before the new resources are there"
        );
    }
}

/// Pods of the update revision ask for what it says, and have it.
pub(crate) fn assert_at_rest(world: &World) {
    let update = oracle::update_revision(world).unwrap();
    let template = &world.set["spec"]["template"];
    for pod in world
        .pods
        .values()
        .filter(|pod| oracle::is_member(world, pod) && oracle::is_on(pod, &update))
    {
        assert_eq!(asked(pod), asked(template), "{}", pod["metadata"]["name"]);
        assert_eq!(given(pod), asked(pod), "{}", pod["metadata"]["name"]);
    }
}
