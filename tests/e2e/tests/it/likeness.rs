//! What this manager makes out of a manifest is what OpenKruise made out of it: so the way back is open, too.
//!
//! Only what differs between any two runs is masked: uids, versions, times, addresses, the random part of pod
//! names; the one annotation that is left out on purpose, and the one that is added.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cluster::{Scenario, scenario, text};
use crate::stored::anew;

const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Which template a revision is for; OpenKruise reads over it.
const TEMPLATE_HASH: &str = "kruise.io/template-hash";

/// Objects of one kind that OpenKruise of the hub's version stored for the CloneSet `set`.
fn stored(set: &str, phase: &str, kind: &str) -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/upstream/main");
    let file = folder.join(format!("{phase}-{kind}.json"));
    let items: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    items
        .into_iter()
        .filter(|item| text(item, "/metadata/name") == set || is_of(item, set))
        .collect()
}

fn is_of(item: &Value, set: &str) -> bool {
    text(item, "/metadata/ownerReferences/0/name") == set
        && text(item, "/metadata/ownerReferences/0/kind") == "CloneSet"
}

/// The manifest that `set` was made from, with the annotation kubectl gave it.
fn manifest(set: &str) -> Value {
    let stored = stored(set, "rest", "clonesets").remove(0);
    let applied = stored["metadata"]["annotations"][APPLIED].clone();
    let mut manifest: Value = serde_json::from_str(applied.as_str().unwrap()).unwrap();
    manifest["metadata"].as_object_mut().unwrap().remove("namespace");
    manifest["metadata"]["annotations"][APPLIED] = applied;
    manifest
}

/// The object without what differs between any two runs.
fn masked(object: &Value, pods_revision: &str) -> Value {
    let mut object = anew(object);
    if let Some(owner) = object.pointer_mut("/metadata/ownerReferences/0/uid") {
        owner.take();
    }
    if object["kind"] == "ControllerRevision" {
        let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
        // A revision has no use for the manifest, which may be as long as the set itself.
        annotations.remove(APPLIED);
        annotations.remove(TEMPLATE_HASH);
    }
    if object["kind"] == "Pod" {
        mask_pod(&mut object, pods_revision);
    }
    object
}

fn mask_pod(pod: &mut Value, revision: &str) {
    assert_eq!(text(pod, "/metadata/labels/controller-revision-hash"), revision);
    let id = pod["metadata"]["labels"]["apps.kruise.io~1cloneset-instance-id".replace("~1", "/")].take();
    let name = pod["metadata"]["name"].take();
    assert_eq!(
        name,
        format!("{}{}", text(pod, "/metadata/generateName"), id.as_str().unwrap())
    );
    // Servers of Kubernetes 1.35 and later copy them from the node that the pod is bound to.
    let labels = pod["metadata"]["labels"].as_object_mut().unwrap();
    labels.retain(|key, _| !key.starts_with("topology.kubernetes.io/"));
    let annotations = pod["metadata"]["annotations"].as_object_mut().unwrap();
    // Another controller's business, which the fixtures' cluster ran.
    annotations.retain(|key, _| !key.ends_with("kruise.io/related-pub"));
    for (key, value) in annotations {
        if key.ends_with("/timestamp") {
            *value = json!("a time");
        }
        if key.ends_with("inplace-update-state") {
            *value = progress(value.as_str().unwrap());
        }
    }
    pod["spec"].as_object_mut().unwrap().remove("nodeName");
    let conditions = pod["status"]["conditions"].as_array().unwrap().iter();
    let ours = conditions.filter(|condition| {
        let kind = text(condition, "/type");
        ["InPlaceUpdateReady", "KruisePodReady"].contains(&&*kind)
    });
    let mut ours: Vec<Value> = ours.cloned().collect();
    for condition in &mut ours {
        condition["lastTransitionTime"].take();
    }
    ours.sort_by_key(|condition| text(condition, "/type"));
    pod["status"] = json!({ "conditions": ours });
}

/// The progress annotation, its keys in their order, without times and image ids, and without the container ids that
/// only we record: OpenKruise reads over them.
fn progress(text: &str) -> Value {
    let text = match text.split_once(",\"containerID\":\"") {
        Some((before, rest)) => format!("{before}{}", rest.split_once('"').unwrap().1),
        None => text.to_owned(),
    };
    let mut masked = String::new();
    let mut values = text.split('"').peekable();
    while let Some(part) = values.next() {
        let is_time = part.len() == 20 && part.ends_with('Z') && part.starts_with("20");
        let is_id = part.contains(':') && part.contains("nginx");
        masked.push_str(if is_time || is_id { "masked" } else { part });
        if values.peek().is_some() {
            masked.push('"');
        }
    }
    masked.into()
}

/// Masked and sorted, so that two lists can be compared.
fn all(objects: &[Value], revision: &dyn Fn(&Value) -> String) -> Vec<Value> {
    let mut all: Vec<Value> = objects
        .iter()
        .map(|object| masked(object, &revision(object)))
        .collect();
    all.sort_by_key(Value::to_string);
    all
}

fn assert_alike(scenario: &Scenario, set: &str, phase: &str) {
    let label = |pod: &Value| text(pod, "/metadata/labels/controller-revision-hash");
    let revisions = scenario.kubectl.list("controllerrevisions", "").unwrap();
    let revisions: Vec<Value> = revisions.into_iter().filter(|one| is_of(one, set)).collect();
    assert_eq!(
        all(&revisions, &label),
        all(&stored(set, phase, "controllerrevisions"), &label)
    );
    assert_eq!(
        all(&scenario.pods_of(set), &label),
        all(&stored(set, phase, "pods"), &label)
    );
    let mut status = scenario.kubectl.get("clonesets", set).unwrap()["status"].take();
    // The server counts generations anew.
    let expected = &stored(set, phase, "clonesets")[0]["status"];
    status["observedGeneration"] = expected["observedGeneration"].clone();
    assert_eq!(&status, expected);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_set_made_here_is_stored_as_openkruise_would_have_stored_it() {
    let scenario = scenario("likeness-plain");
    scenario.kubectl.create(&manifest("plain")).unwrap();
    scenario.until_status_of("plain", &json!({"updatedAvailableReplicas": 3}));
    // The fixtures' set had its image changed once before it was at rest.
    assert_alike(&scenario, "plain", "rest");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_rollout_held_half_way_here_is_stored_as_openkruise_would_have_stored_it() {
    let scenario = scenario("likeness-canary");
    scenario.kubectl.create(&manifest("canary")).unwrap();
    scenario.until_status_of("canary", &json!({"updatedAvailableReplicas": 5}));
    assert_alike(&scenario, "canary", "rest");
    let image =
        json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.26"}]);
    scenario
        .kubectl
        .run(&[
            "patch",
            "clonesets",
            "canary",
            "--type=json",
            "-p",
            &image.to_string(),
        ])
        .unwrap();
    scenario.until_status_of("canary", &json!({"updatedReadyReplicas": 2, "readyReplicas": 5}));
    assert_alike(&scenario, "canary", "mid");
}
