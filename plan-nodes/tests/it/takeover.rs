//! What OpenKruise stored is taken over as it is, and goes on.

use std::{fs, path::PathBuf};

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::ResourceId;
use serde_json::{Value, json};

use crate::world::World;

const VERSIONS: [&str; 3] = ["1.8.4", "1.9.0", "main"];

/// A list as the server sent it.
fn items(version: &str, file: &str) -> Vec<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    let text = fs::read_to_string(root.join(version).join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The jobs and NodeImages of a version, a minute after its manager last wrote, with nodes that have the same labels.
fn stored(version: &str, state: &str) -> World {
    let mut world = World::new();
    let images = items(version, &format!("{state}-nodeimages.json"));
    assert_eq!(images.len(), 4, "{version}");
    for image in images {
        let created: Timestamp = image["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        world.now = created + SignedDuration::from_secs(60);
        let metadata = json!({"name": image["metadata"]["name"], "labels": image["metadata"]["labels"]});
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        world.store(
            ResourceId::NODES,
            json!({"metadata": metadata, "status": {"conditions": [ready]}}),
        );
        world.store(kruise_api::nodeimage::RESOURCE, image);
    }
    for mut job in items(version, &format!("{state}-imagepulljobs.json")) {
        // Tests have one namespace.
        job["metadata"]["namespace"] = json!("shop");
        world.store(kruise_api::imagepulljob::RESOURCE, job);
    }
    let names = world.names(kruise_api::nodeimage::RESOURCE);
    for name in names {
        let mut image = world.image(&name).clone();
        let tags = image.pointer_mut("/spec/images/nginx/tags/0/ownerReferences/0/namespace");
        if let Some(namespace) = tags {
            *namespace = json!("shop");
        }
        world.store(kruise_api::nodeimage::RESOURCE, image);
    }
    world
}

#[test]
fn what_is_stored_is_taken_over_without_a_write_or_an_event() {
    for (version, state) in VERSIONS
        .iter()
        .flat_map(|version| [(version, "mid"), (version, "rest")])
    {
        let mut world = stored(version, state);
        assert_eq!(world.active("pull"), ["kwok-0", "kwok-1"], "{version}");
        assert_eq!(world.settle(), 0, "{version} {state}: {:#?}", world.written);
        assert!(world.written.is_empty() && world.events.is_empty());
    }
}

#[test]
fn a_stored_job_follows_its_agents_and_leaves_nothing() {
    for version in VERSIONS {
        let mut world = stored(version, "mid");
        world.report("kwok-0", "nginx:1.27", "Succeeded");
        world.settle();
        let status = &world.the_job("pull")["status"];
        assert_eq!((&status["succeeded"], &status["active"]), (&json!(1), &json!(1)));
        assert!(world.written.is_empty(), "{version}: only the status");
        world.delete(kruise_api::imagepulljob::RESOURCE, "shop", "pull");
        world.settle();
        assert!(world.names(kruise_api::imagepulljob::RESOURCE).is_empty());
        for node in ["kwok-0", "kwok-1"] {
            assert_eq!(world.image(node)["spec"]["images"], json!({}), "{version}");
        }
    }
}

/// As OpenKruise creates it: the hash is of a dump of its types.
#[test]
fn the_running_jobs_of_a_stored_list_are_kept() {
    let mut world = World::new();
    world.node("n1");
    world.list("warm", &json!({"images": ["app:1", "db:2"], "parallelism": 5, "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 60}}));
    let label = json!({"metadata": {"labels": {"controller-revision-hash": "5c9f7c4d6b"}}});
    world.edit(kruise_api::imagelistpulljob::RESOURCE, "shop", "warm", &label);
    let status = json!({"status": {"desired": 2, "active": 2, "completed": 0, "succeeded": 0, "startTime": "2026-01-01T01:00:00Z"}});
    world.edit(kruise_api::imagelistpulljob::RESOURCE, "shop", "warm", &status);
    let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "name": "warm",
        "uid": "uid-imagelistpulljobs-warm", "controller": true, "blockOwnerDeletion": true});
    for (name, image) in [("warm-x7k2p", "app:1"), ("warm-9fj4d", "db:2")] {
        world.job(
            name,
            &json!({"image": image, "parallelism": 5,
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 60}}),
        );
        let mut metadata =
            json!({"ownerReferences": [owner], "finalizers": ["apps.kruise.io/deletion-protection"]});
        metadata["labels"] = label["metadata"]["labels"].clone();
        world.edit(
            kruise_api::imagepulljob::RESOURCE,
            "shop",
            name,
            &json!({"metadata": metadata}),
        );
    }
    world.settle();
    assert_eq!(
        world.names(kruise_api::imagepulljob::RESOURCE),
        ["warm-9fj4d", "warm-x7k2p"]
    );
    let of_jobs = world
        .written
        .iter()
        .filter(|line| !line.starts_with("request-pull"));
    assert_eq!(of_jobs.count(), 0, "{:#?}", world.written);
}
