//! PersistentPodStates that annotations of workloads ask for.

use kruise_plan_kit::Explain;
use serde_json::{Value, json};

use crate::world::{GENERATE, HOST, NOTED, PREFERRED, REQUIRED, World, ZONE};

fn annotations() -> Value {
    json!({GENERATE: "true", REQUIRED: "kubernetes.io/os", PREFERRED: HOST})
}

fn annotated(group: &str) -> World {
    let mut world = World::new();
    world.workload(group, "broker", &json!({"replicas": 5}));
    world.annotate("broker", &annotations());
    world
}

#[test]
fn a_workload_whose_annotations_ask_for_it_gets_one_of_its_name_that_it_owns() {
    for (group, api_version, kind) in [
        ("apps", "apps/v1", "StatefulSet"),
        ("apps.kruise.io", "apps.kruise.io/v1beta1", "StatefulSet"),
        ("example.com", "example.com/v1", "Game"),
    ] {
        let mut world = annotated(group);
        world.settle();
        assert_eq!(world.written, ["create-pod-state broker"]);
        let state = &world.states["broker"];
        assert_eq!(
            state["metadata"]["ownerReferences"],
            json!([{"apiVersion": api_version, "kind": kind, "name": "broker", "uid": world.uid("broker"),
                "controller": true}])
        );
        assert_eq!(
            state["spec"],
            json!({"targetRef": {"apiVersion": api_version, "kind": kind, "name": "broker"},
                "requiredPersistentTopology": {"keys": ["kubernetes.io/os"]},
                "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": [HOST]}}]})
        );
        assert_eq!(
            world.events,
            [format!(
                "GeneratedPersistentPodState on {kind}: PersistentPodState broker was created"
            )]
        );
    }
}

#[test]
fn five_pods_of_it_are_recorded_with_two_labels_each() {
    let mut world = annotated("apps.kruise.io");
    world.annotate("broker", &json!({REQUIRED: ZONE}));
    for number in 0..5 {
        world.ready("broker", &format!("broker-{number}"), "a1");
    }
    world.settle();
    assert_eq!(world.recorded("broker").split(' ').count(), 5);
    for number in 0..5 {
        let record = world.record("broker", &format!("broker-{number}"));
        assert_eq!(record["nodeTopologyLabels"], json!({ZONE: "a", HOST: "a1"}));
    }
}

#[test]
fn it_follows_the_annotations_all_four_of_them() {
    let mut world = annotated("apps");
    world.annotate("broker", &json!({REQUIRED: ZONE}));
    world.ready("broker", "broker-0", "a1");
    world.settle();
    world.annotate("broker", &json!({REQUIRED: null}));
    world.settle();
    assert_eq!(
        world.states["broker"]["spec"]["requiredPersistentTopology"],
        Value::Null
    );
    assert_eq!(
        world.record("broker", "broker-0")["nodeTopologyLabels"],
        json!({HOST: "a1"})
    );
    world.annotate("broker", &json!({NOTED: "ip,mac", PREFERRED: "x, y"}));
    world.settle();
    let spec = &world.states["broker"]["spec"];
    assert_eq!(
        spec["persistentPodAnnotations"],
        json!([{"key": "ip"}, {"key": "mac"}])
    );
    // Keys are not trimmed.
    assert_eq!(
        spec["preferredPersistentTopology"][0]["preference"]["keys"],
        json!(["x", " y"])
    );
    world.annotate("broker", &json!({GENERATE: "false"}));
    world.settle();
    assert!(world.states.is_empty());
    assert_eq!(world.written.last().unwrap(), "delete-pod-state broker");
    world.annotate("broker", &annotations());
    world.annotate("broker", &json!({GENERATE: null}));
    world.settle();
    assert!(world.states.is_empty());
}

#[test]
fn one_that_is_edited_or_deleted_by_hand_is_restored_but_for_its_policy() {
    let mut world = annotated("apps");
    world.settle();
    world.edit(
        "broker",
        &json!({"spec": {"requiredPersistentTopology": {"keys": ["mine"]},
            "persistentPodStateRetentionPolicy": "WhenDeleted"}}),
    );
    world.settle();
    let spec = &world.states["broker"]["spec"];
    assert_eq!(
        spec["requiredPersistentTopology"]["keys"],
        json!(["kubernetes.io/os"])
    );
    assert_eq!(spec["persistentPodStateRetentionPolicy"], "WhenDeleted");
    world.states.clear();
    world.settle();
    assert_eq!(world.written.last().unwrap(), "create-pod-state broker");
}

#[test]
fn without_topology_there_is_none_and_one_that_exists_stays() {
    let mut world = annotated("apps");
    world.annotate("broker", &json!({REQUIRED: "", PREFERRED: null}));
    world.settle();
    assert!(world.states.is_empty() && world.events.is_empty());
    world.annotate("broker", &annotations());
    world.settle();
    let before = world.states["broker"].clone();
    world.annotate("broker", &json!({REQUIRED: "", PREFERRED: ""}));
    world.settle();
    assert_eq!(world.states["broker"], before);
}

#[test]
fn it_goes_with_its_workload_and_comes_back_with_the_next_one_of_its_name() {
    let mut world = annotated("apps.kruise.io");
    world.settle();
    let old = world.states["broker"].clone();
    world.remove_workload("broker");
    assert!(world.states.is_empty(), "the garbage collector");
    world.workload("apps.kruise.io", "broker", &json!({"replicas": 1}));
    world.annotate("broker", &annotations());
    // It is not collected yet, and is nobody's business.
    world.store(old);
    world.written.clear();
    world.events.clear();
    world.settle();
    assert!(
        world.written.is_empty() && world.events.is_empty(),
        "{:?}",
        world.events
    );
    world.states.clear();
    world.settle();
    assert_eq!(world.written, ["create-pod-state broker"]);
}

#[test]
fn a_workload_that_is_being_deleted_gets_none() {
    let mut world = annotated("apps");
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T01:00:00Z"}});
    world.change("broker", &leaving);
    world.settle();
    assert!(world.states.is_empty());
}

#[test]
fn one_that_somebody_else_made_is_never_written_and_an_event_says_so() {
    let mut world = annotated("apps");
    world.workload("apps", "other", &json!({"replicas": 1}));
    for (change, is_told) in [
        // Of no owner, and for another workload.
        (json!({"spec": {"targetRef": {"name": "other"}}}), true),
        // Of no owner, and for this one, with other topology.
        (json!({}), true),
        // What the annotations say, made by hand.
        (
            json!({"spec": {"requiredPersistentTopology": {"keys": ["kubernetes.io/os"]}}}),
            false,
        ),
    ] {
        world.state("broker", "broker", &change);
        let before = world.states["broker"]["spec"].clone();
        world.events.clear();
        world.settle();
        assert_eq!(world.states["broker"]["spec"], before);
        assert_eq!(!world.events.is_empty(), is_told, "{change}: {:?}", world.events);
        assert!(world.events.iter().all(|event| {
            event.starts_with(
                "PersistentPodStateNotGenerated on StatefulSet: no PersistentPodState is generated: the PersistentPodState of this name",
            )
        }));
        world.annotate("broker", &json!({GENERATE: "false"}));
        world.settle();
        assert!(world.states.contains_key("broker"), "and never deleted");
        world.annotate("broker", &annotations());
    }
    assert!(world.written.is_empty());
}

#[test]
fn one_that_a_program_made_with_a_reference_to_the_workload_is_not_deleted() {
    let mut world = annotated("apps");
    world.annotate("broker", &json!({GENERATE: null}));
    let owner = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "broker",
        "uid": world.uid("broker"), "controller": true, "blockOwnerDeletion": true}]);
    world.state(
        "broker",
        "broker",
        &json!({"metadata": {"ownerReferences": owner}}),
    );
    world.settle();
    assert!(world.states.contains_key("broker") && world.written.is_empty());
}

#[test]
fn none_is_generated_beside_another_one_for_the_same_workload() {
    let mut world = annotated("apps");
    world.state("mine", "broker", &json!({}));
    world.settle();
    assert!(world.written.is_empty());
    assert_eq!(
        world.events,
        [
            "PersistentPodStateNotGenerated on StatefulSet: no PersistentPodState is generated: PersistentPodState mine is for this workload"
        ]
    );
    world.states.remove("mine");
    world.settle();
    assert_eq!(world.written, ["create-pod-state broker"]);
}

#[test]
fn of_two_workloads_of_one_name_the_first_gets_it_and_the_other_is_told() {
    let mut world = annotated("apps");
    world.settle();
    world.workload("apps.kruise.io", "broker", &json!({"replicas": 1}));
    let key = ("apps.kruise.io".to_owned(), "broker".to_owned());
    world.annotate_group(&key, &annotations());
    world.events.clear();
    world.settle();
    assert_eq!(world.written, ["create-pod-state broker"]);
    assert_eq!(world.events.len(), 1, "{:?}", world.events);
    assert_eq!(
        world.states["broker"]["spec"]["targetRef"]["apiVersion"],
        "apps/v1"
    );
}

#[test]
fn the_version_of_the_target_is_not_compared() {
    let mut world = annotated("apps.kruise.io");
    world.settle();
    let older = json!({"spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1alpha1"}}});
    world.edit("broker", &older);
    world.written.clear();
    world.settle();
    assert!(world.written.is_empty());
    let plan = world.plan("broker", Explain::No);
    assert!(plan.writes.is_empty() && plan.events.is_empty());
}
