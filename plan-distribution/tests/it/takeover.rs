//! What OpenKruise stored is taken over as it is.

use std::{fs, path::PathBuf};

use go_compat::{json::to_go_json, sha256};
use kruise_plan_kit::ResourceId;
use serde_json::{Value, json};

use crate::world::World;

/// The ResourceDistribution that a version of OpenKruise stored, and the copy that it made of it. The copy is built
/// from the specification: the fixtures have none.
fn stored(version: &str, state: &str) -> World {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    let text = fs::read_to_string(
        root.join(version)
            .join(format!("{state}-resourcedistributions.json")),
    )
    .unwrap();
    let items: Vec<Value> = serde_json::from_str(&text).unwrap();
    let [distribution] = &items[..] else {
        panic!("one in {version}")
    };
    let mut world = World::new(&["default", "kube-public", "kube-system"]);
    let mut copy = distribution["spec"]["resource"].clone();
    let hash = sha256::hex(to_go_json(&copy).as_bytes());
    let owner = json!({"apiVersion": distribution["apiVersion"], "kind": "ResourceDistribution", "name": "dist",
        "uid": distribution["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true});
    copy["metadata"] = json!({"name": "shared", "namespace": "default", "ownerReferences": [owner],
        "annotations": {"kruise.io/resourcedistribution.resource.from": "dist",
            "kruise.io/resourcedistribution.resource.hashcode": hash}});
    world.put(ResourceId::CONFIG_MAPS, copy);
    world.put(kruise_api::resourcedistribution::RESOURCE, distribution.clone());
    world
}

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    ["1.8.4", "1.9.0", "main"]
        .into_iter()
        .flat_map(|version| [(version, "mid"), (version, "rest")])
}

#[test]
fn what_is_stored_is_taken_over_without_a_write_or_an_event() {
    for (version, state) in all() {
        let mut world = stored(version, state);
        world.settle();
        assert!(world.written.is_empty(), "{version} {state}: {:?}", world.written);
        assert_eq!(world.reports, 0, "{version} {state}: {}", world.status("dist"));
        assert!(world.events.is_empty());
        assert_eq!(world.reads.get(), 1);
    }
}

#[test]
fn a_copy_that_is_created_anew_is_what_openkruise_made() {
    for (version, state) in all() {
        let mut world = stored(version, state);
        let mut before = world
            .get(ResourceId::CONFIG_MAPS, "default", "shared")
            .unwrap()
            .clone();
        world.delete(ResourceId::CONFIG_MAPS, "default", "shared");
        world.settle();
        let mut after = world
            .get(ResourceId::CONFIG_MAPS, "default", "shared")
            .unwrap()
            .clone();
        for copy in [&mut before, &mut after] {
            let metadata = copy["metadata"].as_object_mut().unwrap();
            for own in ["uid", "resourceVersion", "creationTimestamp"] {
                metadata.remove(own);
            }
            // That of the version on the wire.
            metadata["ownerReferences"][0]["apiVersion"] = Value::Null;
        }
        assert_eq!(before, after, "{version} {state}");
    }
}

#[test]
fn a_copy_of_other_bytes_with_the_same_contents_is_kept() {
    let mut world = stored("main", "rest");
    let annotations = json!({"kruise.io/resourcedistribution.resource.hashcode": "0".repeat(64)});
    world.edit(
        ResourceId::CONFIG_MAPS,
        "default",
        "shared",
        &json!({"metadata": {"annotations": annotations}}),
    );
    world.settle();
    assert!(world.written.is_empty() && world.reports == 0);
}

#[test]
fn copies_in_system_namespaces_are_removed_and_an_event_says_so() {
    let mut world = stored("1.9.0", "rest");
    let mut copy = world
        .get(ResourceId::CONFIG_MAPS, "default", "shared")
        .unwrap()
        .clone();
    for namespace in ["kube-system", "kube-public"] {
        copy["metadata"]["namespace"] = json!(namespace);
        copy["metadata"]["uid"] = Value::Null;
        world.put(ResourceId::CONFIG_MAPS, copy.clone());
    }
    world.change("dist", &json!({"spec": {"targets": {"allNamespaces": true}}}));
    world.settle();
    assert_eq!(
        world.writes(),
        ["delete-copy kube-public/shared", "delete-copy kube-system/shared"]
    );
    let removed = world
        .events
        .iter()
        .filter(|event| event.starts_with("SystemNamespaceCopyRemoved"));
    assert_eq!(removed.count(), 2);
}
