//! What OpenKruise stored is taken over as it is. There are no stored PersistentPodStates among the fixtures: these
//! are built by hand from what its versions write.

use serde_json::{Value, json};

use crate::world::{GENERATE, HOST, NOTED, PREFERRED, REQUIRED, World, ZONE};

/// A StatefulSet with two pods, and the PersistentPodState that OpenKruise generated for it, in the form of a
/// version: at rest, or with a pod that is recreated.
fn stored(version: &str, is_mid: bool) -> World {
    let mut world = World::new();
    world.workload("apps.kruise.io", "broker", &json!({"replicas": 2}));
    let annotations = json!({GENERATE: "true", REQUIRED: ZONE, PREFERRED: HOST, NOTED: "ip,none"});
    world.annotate("broker", &annotations);
    world.ready("broker", "broker-0", "a1");
    world.edit_pod(
        "broker-0",
        &json!({"metadata": {"annotations": {"ip": "10.0.0.1"}}}),
    );
    if is_mid {
        world.pod("broker", "broker-1");
    } else {
        world.ready("broker", "broker-1", "bare");
    }
    let keys = if version == "v1alpha1" {
        "nodeTopologyKeys"
    } else {
        "keys"
    };
    let second: Value = if is_mid {
        json!({"nodeName": "b1", "nodeTopologyLabels": {ZONE: "b", HOST: "b1"}})
    } else {
        json!({"nodeName": "bare", "nodeTopologyLabels": {HOST: "bare"}})
    };
    let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "broker",
        "uid": world.uid("broker"), "controller": true});
    world.store(json!({
        "apiVersion": format!("apps.kruise.io/{version}"), "kind": "PersistentPodState",
        "metadata": {"name": "broker", "namespace": "mq", "generation": 1, "ownerReferences": [owner]},
        "spec": {
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "broker"},
            "persistentPodAnnotations": [{"key": "ip"}, {"key": "none"}],
            "requiredPersistentTopology": {keys: [ZONE]},
            "preferredPersistentTopology": [{"weight": 100, "preference": {keys: [HOST]}}]},
        "status": {"observedGeneration": 1, "podStates": {
            "broker-0": {"nodeName": "a1", "nodeTopologyLabels": {ZONE: "a", HOST: "a1"}, "annotations": {"ip": "10.0.0.1"}},
            "broker-1": second}},
    }));
    world
}

#[test]
fn what_is_stored_is_taken_over_without_a_write_a_read_or_an_event() {
    for version in ["v1alpha1", "v1beta1"] {
        for is_mid in [false, true] {
            let mut world = stored(version, is_mid);
            world.settle();
            assert!(
                world.written.is_empty() && world.reports.is_empty(),
                "{version} {is_mid}"
            );
            assert!(world.events.is_empty() && world.reads == 0, "{version} {is_mid}");
        }
    }
}

#[test]
fn a_generated_one_that_is_created_anew_is_what_openkruise_made() {
    let mut world = stored("v1beta1", false);
    let before = world.states.remove("broker").unwrap();
    world.settle();
    let after = &world.states["broker"];
    for member in ["apiVersion", "kind", "spec"] {
        assert_eq!(after[member], before[member], "{member}");
    }
    assert_eq!(
        after["metadata"]["ownerReferences"],
        before["metadata"]["ownerReferences"]
    );
    assert_eq!(after["status"], before["status"]);
}
