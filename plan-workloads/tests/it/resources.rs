//! The oracle's eyes on resources that change in place.

use kruise_plan_kit::Write;
use kruise_plan_test_kit::condition;
use serde_json::Value;

use crate::{
    oracle,
    world::{World, uid_of},
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

/// A pod whose resources changed is said to have arrived only when its containers have what they ask for. Another
/// change may arrive before any of them started, and one that is to go is held for that at once.
pub(crate) fn assert_given(before: &World, after: &World, write: &Write) {
    let name = &write.target().name;
    let state =
        |world: &World| world.pods[name]["metadata"]["labels"]["lifecycle.apps.kruise.io/state"].clone();
    let progress = &before.pods[name]["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"];
    let resized = progress
        .as_str()
        .is_some_and(|text| text.contains(r#""updateResources":true"#));
    let stays = |state: Value| state == "Updating" || state == "PreparingDelete";
    if resized && state(before) == "Updating" && !stays(state(after)) {
        let pod = &after.pods[name];
        assert_eq!(
            given(pod),
            asked(pod),
            "{write} comes before the new resources are there"
        );
    }
}

/// May an update that broke off after it had asked for resources leave them with this pod? Where pods do not change
/// in place, where giving them back would restart what a hook or the limits want to be served, where it was given
/// back once already, and where no one revision asks for all that was left.
fn may_keep(world: &World, pod: &Value) -> bool {
    let (spec, memory) = (&world.set["spec"], "/spec/containers/1/resources/limits/memory");
    let rolling = &spec["updateStrategy"]["rollingUpdate"];
    let policy = rolling["podUpdatePolicy"].as_str().unwrap_or_default();
    let in_place = spec["updateStrategy"]["type"] != "OnDelete" && policy.starts_with("InPlace");
    let restarts = pod.pointer(memory) != spec["template"].pointer(memory);
    let drains = spec["lifecycle"]["inPlaceUpdate"].is_object();
    let no_room = oracle::Allowed::by(spec).unavailable < 1;
    let kept = !in_place || rolling["paused"] == true || (restarts && (drains || no_room));
    world.resized.contains(&uid_of(pod))
        && (kept || was_given_back(world, pod) || !is_left_by_one(world, pod))
}

/// Does its record say that, of the update revision?
fn was_given_back(world: &World, pod: &Value) -> bool {
    let record = &pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"];
    let record: Value = serde_json::from_str(record.as_str().unwrap_or("null")).unwrap();
    record["givenBack"] == true && record["revision"] == *oracle::update_revision(world).unwrap()
}

/// Is each amount that differs from the template what one stored revision asks for?
fn is_left_by_one(world: &World, pod: &Value) -> bool {
    let (has, wanted) = (asked(pod), asked(&world.set["spec"]["template"]));
    world.revisions.values().any(|revision| {
        let left = asked(&revision["data"]["spec"]["template"]);
        let mut all = has.iter().zip(&wanted).zip(&left);
        all.all(|((has, wanted), left)| has == wanted || has == left)
    })
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
        assert!(
            asked(pod) == asked(template) || may_keep(world, pod),
            "{}: {:?}",
            pod["metadata"]["name"],
            asked(pod)
        );
        assert_eq!(given(pod), asked(pod), "{}", pod["metadata"]["name"]);
    }
}
