//! What OpenKruise stored is taken over as it is, and goes on.

use std::{fs, path::PathBuf};

use kruise_plan_kit::ResourceId;
use serde_json::{Value, json};

use super::world::World;

const NPP: ResourceId = kruise_api::nodepodprobe::RESOURCE;
const NODES: [&str; 4] = ["kwok-0", "kwok-1", "kwok-2", "kwok-3"];

fn items(version: &str, file: &str) -> Vec<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    let text = fs::read_to_string(root.join(version).join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The markers, NodePodProbes and pods of a version, and the nodes that they are on.
fn stored(version: &str, state: &str) -> World {
    let mut world = World::new(&[]);
    for probes in items(version, &format!("{state}-nodepodprobes.json")) {
        world.node(probes["metadata"]["name"].as_str().unwrap(), &json!({}));
        world.put(NPP, probes);
    }
    for marker in items(version, &format!("{state}-podprobemarkers.json")) {
        world.put(kruise_api::podprobemarker::RESOURCE, marker);
    }
    for pod in items(version, &format!("{state}-pods.json")) {
        world.put(ResourceId::PODS, pod);
    }
    world
}

#[test]
fn stored_markers_and_their_probes_are_taken_over_and_no_pod_is_written() {
    for version in ["1.8.4", "1.9.0", "main"] {
        for state in ["rest", "mid"] {
            let mut world = stored(version, state);
            let probed: usize = NODES.iter().map(|node| world.probes(node).len()).sum();
            assert_eq!(probed, 3, "{version}");
            let written = world.settle();
            // OpenKruise 1.8.4 stored an address that its pod does not have any more.
            let corrected: &[&str] = if version == "1.8.4" {
                &["set-probes kwok-1"]
            } else {
                &[]
            };
            assert_eq!(written, corrected, "{version} {state}");
            assert!(world.events.is_empty());
        }
    }
}

#[test]
fn a_stored_marker_follows_its_agents_and_leaves_nothing() {
    for version in ["1.8.4", "1.9.0", "main"] {
        let mut world = stored(version, "rest");
        world.settle();
        let node = NODES
            .into_iter()
            .find(|node| !world.probes(node).is_empty())
            .unwrap();
        let pod = world.probes(node)[0].split_once(' ').unwrap().0.to_owned();
        world.report(node, &pod, "ppm#idle", "Succeeded", "");
        assert_eq!(world.settle(), [format!("mark-pod {pod}")], "{version}");
        let stored = world.get(ResourceId::PODS, "default", &pod);
        let conditions = stored["status"]["conditions"].as_array().unwrap();
        assert!(
            conditions
                .iter()
                .any(|one| one["type"] == "game.kruise.io/idle" && one["status"] == "True")
        );
        world.delete(kruise_api::podprobemarker::RESOURCE, "default", "ppm");
        world.settle();
        for node in NODES {
            assert_eq!(world.get(NPP, "", node)["spec"], json!({}), "{version}");
        }
        assert!(
            world
                .get(kruise_api::podprobemarker::RESOURCE, "default", "ppm")
                .is_null()
        );
    }
}
