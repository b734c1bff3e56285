//! Jobs that OpenKruise runs are taken over as they are, and go on.

use std::{fs, path::PathBuf};

use kruise_plan_kit::Explain;
use kruise_plan_test_kit::node;
use serde_json::{Value, json};

use super::world::World;

/// A list as the server sent it.
fn items(version: &str, file: &str) -> Vec<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    let text = fs::read_to_string(root.join(version).join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The stored jobs of all versions, each with its pods and the nodes of their cluster.
fn stored() -> Vec<World> {
    let mut all = Vec::new();
    for version in ["1.8.4", "1.9.0", "main"] {
        for job in items(version, "mid-broadcastjobs.json") {
            let now = job["status"]["startTime"].as_str().unwrap().parse().unwrap();
            let mut world = World::new(Value::Null, now);
            let uid = job["metadata"]["uid"].clone();
            world.set = job;
            world
                .nodes
                .extend((0..4).map(|number| node(&format!("kwok-{number}"))));
            for pod in items(version, "mid-pods.json") {
                if pod["metadata"]["ownerReferences"][0]["uid"] == uid {
                    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
                    world.pods.insert(name, pod);
                }
            }
            all.push(world);
        }
    }
    assert!(!all.is_empty(), "nothing is stored");
    all
}

#[test]
fn a_stored_job_is_taken_over_without_a_write_or_an_event() {
    let all = stored();
    assert_eq!(all.len(), 3);
    for world in all {
        assert_eq!(world.pods.len(), 2);
        let plan = world.plan(Explain::No);
        assert!(plan.writes.is_empty() && plan.events.is_empty(), "{plan:#?}");
        assert_eq!(plan.status, None);
    }
}

#[test]
fn a_stored_job_goes_on_where_its_pods_have_ended() {
    for mut world in stored() {
        let first = world.pods.keys().next().unwrap().clone();
        world.touch(&first, |pod, _, _| pod["status"]["phase"] = json!("Succeeded"));
        let plan = world.plan(Explain::No);
        assert_eq!(plan.writes.len(), 1, "one more pod: {plan:#?}");
        let status = plan.status.unwrap();
        assert_eq!(status.patch, json!({"status": {"active": 1, "succeeded": 1}}));
    }
}
