//! Revisions: what is kept of what was injected.

use std::collections::BTreeSet;

use kruise_plan_kit::sidecars::names;
use serde_json::json;

use crate::world::{World, container, parsed};

fn numbers(world: &World) -> Vec<(String, i64)> {
    let of = |(name, revision): (&String, &serde_json::Value)| {
        (name.clone(), revision["revision"].as_i64().unwrap())
    };
    let mut all: Vec<(String, i64)> = world.revisions.iter().map(of).collect();
    all.sort_by_key(|(_, number)| *number);
    all
}

#[test]
fn the_published_revision_comes_out_byte_by_byte() {
    let mut world = World::new();
    world.set["metadata"]["name"] = json!("log-agent");
    world.edit(|spec| spec["containers"] = json!([container("logger", "busybox:1.36")]));
    world.set["metadata"]["labels"] = json!({"team": "a"});
    world.set["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!("{}");
    world.reconcile();
    let revision = &world.revisions["log-agent-5bd8f95bd"];
    assert_eq!(
        revision["data"].to_string(),
        r#"{"spec":{"$patch":"replace","containers":[{"image":"busybox:1.36","imagePullPolicy":"IfNotPresent","name":"logger","podInjectPolicy":"BeforeAppContainer","resources":{},"shareVolumePolicy":{"type":"disabled"},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","upgradeStrategy":{"upgradeType":"ColdUpgrade"}}],"imagePullSecrets":null,"initContainers":null,"patchPodMetadata":null,"volumes":null}}"#
    );
    assert_eq!(
        revision["metadata"]["labels"],
        json!({"team": "a", "kruise.io/sidecarset-name": "log-agent", "controller.kubernetes.io/hash": "5bd8f95bd"})
    );
    let keys: BTreeSet<&String> = revision["metadata"]["annotations"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(
        keys.len(),
        2,
        "both hashes, and not what kubectl applied: {keys:?}"
    );
    assert_eq!(revision["revision"], 1);
    assert_eq!(
        revision["metadata"]["ownerReferences"],
        json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "name": "log-agent", "uid": "set-uid",
                "controller": true, "blockOwnerDeletion": true}])
    );
    assert_eq!(world.set["status"]["latestRevision"], "log-agent-5bd8f95bd");
    assert_eq!(world.set["status"]["collisionCount"], 0);
}

#[test]
fn going_back_takes_the_earlier_revision_again_under_a_higher_number() {
    let mut world = World::new();
    world.settle();
    world.image("log:2");
    world.settle();
    world.image("log:1");
    world.settle();
    let all = numbers(&world);
    assert_eq!(all.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(world.set["status"]["latestRevision"], json!(all[1].0));
    assert!(world.reconcile().is_empty());
}

#[test]
fn revisions_beyond_the_limit_go_oldest_first_but_none_that_a_pod_was_injected_with() {
    let mut world = World::new();
    world.edit(|spec| spec["revisionHistoryLimit"] = json!(2));
    world.settle();
    world.add("p0");
    world.image("log:2");
    world.settle();
    let second = world.set["status"]["latestRevision"].as_str().unwrap().to_owned();
    let record: serde_json::Value = parsed(&world.annotation("p0", names::HASH));
    assert_eq!(record["logs"]["controllerRevision"], json!(second));
    world.strategy("paused", json!(true));
    for image in ["log:3", "log:4", "log:5"] {
        world.image(image);
        world.settle();
    }
    let names: Vec<String> = numbers(&world).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&second), "a pod still has it");
}

#[test]
fn the_revision_that_the_status_calls_the_newest_stays_until_the_status_names_another() {
    let mut world = World::new();
    world.edit(|spec| spec["revisionHistoryLimit"] = json!(1));
    world.settle();
    let first = world.set["status"]["latestRevision"].as_str().unwrap().to_owned();
    world.image("log:2");
    let done = world.reconcile();
    assert_eq!(done.len(), 1, "a new revision and nothing else: {done:?}");
    assert!(world.revisions.contains_key(&first));
    world.settle();
    assert_ne!(world.set["status"]["latestRevision"], json!(first));
    assert!(!world.revisions.contains_key(&first));
}

#[test]
fn a_revision_that_is_injected_by_name_or_version_stays() {
    let mut world = World::new();
    world.edit(|spec| {
        spec["revisionHistoryLimit"] = json!(1);
        spec["customVersion"] = json!("v1");
    });
    world.settle();
    let first = world.set["status"]["latestRevision"].as_str().unwrap().to_owned();
    world.edit(|spec| {
        spec["customVersion"] = json!("v2");
        spec["containers"][0]["image"] = json!("log:2");
        spec["injectionStrategy"] = json!({"revision": {"customVersion": "v1"}});
    });
    world.settle();
    assert!(world.revisions.contains_key(&first));
    world.edit(|spec| spec["injectionStrategy"] = json!({}));
    world.settle();
    assert!(!world.revisions.contains_key(&first));
}

#[test]
fn the_custom_version_is_put_on_the_revision_when_it_is_given_later() {
    let mut world = World::new();
    world.settle();
    world.edit(|spec| spec["customVersion"] = json!("blue"));
    assert_eq!(world.reconcile().len(), 1);
    let revision = world.revisions.values().next().unwrap();
    assert_eq!(revision["metadata"]["labels"][names::CUSTOM_VERSION], "blue");
    assert!(world.reconcile().is_empty());
}

#[test]
fn a_name_that_somebody_else_holds_is_counted_and_passed_over() {
    let mut world = World::new();
    let first = world.plan();
    let name = first.writes[0].steps[0].write.target().name.clone();
    world.memory.taken_names.insert(name.clone());
    world.reconcile();
    assert!(!world.revisions.contains_key(&name) && world.revisions.len() == 1);
    assert_eq!(world.set["status"]["collisionCount"], 1);
    world.memory.taken_names.clear();
    assert!(
        world.reconcile().is_empty(),
        "what was made under another name is found again"
    );
}

#[test]
fn only_what_is_injected_makes_a_revision_and_volumes_alone_touch_no_pod() {
    let mut world = World::new();
    world.add("p0");
    world.settle();
    world.strategy("maxUnavailable", json!(2));
    assert!(world.reconcile().is_empty());
    world.edit(|spec| spec["volumes"] = json!([{"name": "v", "emptyDir": {}}]));
    let done = world.reconcile();
    assert!(
        done.len() == 1 && done[0].starts_with("create-revision"),
        "{done:?}"
    );
}

#[test]
fn a_set_that_is_being_deleted_writes_nothing() {
    let mut world = World::new();
    world.add("p0");
    world.settle();
    world.image("log:2");
    world.set["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
    let plan = world.plan();
    assert!(plan.writes.is_empty() && plan.status.is_none());
    assert!(world.why("").contains("keep their sidecars"));
}
