//! Objects as OpenKruise's daemon leaves them, and a manager of OpenKruise beside this agent.

use kruise_agent_core::{Config, Effect, RuntimeContainer};
use serde_json::{Value, json};

use crate::world::{World, seconds};

fn container(name: &str) -> RuntimeContainer {
    RuntimeContainer {
        id: name.into(),
        name: name.into(),
        created: 1,
        is_running: true,
        exit_code: None,
        ..RuntimeContainer::default()
    }
}

fn pod(report: Option<&str>) -> Value {
    let mut pod = json!({
        "metadata": {
            "annotations": {"config": "v1", "kruise.io/sidecarset-hash": "{}"}},
        "spec": {"containers": [{"name": "main", "env": [
            {"name": "CFG", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['config']"}}}]}]},
        "status": {"containerStatuses": [
            {"name": "main", "containerID": "containerd://main", "state": {"running": {}}}]},
    });
    if let Some(report) = report {
        pod["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"] = report.into();
    }
    pod
}

fn started(pod: &Value) -> World {
    let mut world = World::unstarted(Config::new("n1"));
    world.containers.insert("uid-web".into(), vec![container("main")]);
    world.put_pod("web", pod);
    world.describe_environment("web", "main", "main");
    // What is there already comes with the first list, not as a change.
    world.restart();
    world
}

fn reads(world: &World) -> usize {
    world.count(|effect| matches!(effect, Effect::ReadContainers { .. }))
}

#[test]
fn s7_12_10_an_existing_annotation_causes_no_restart_no_write_and_no_read() {
    // An environment that this agent would hash in another way, and a hash of a kubelet that it has never seen.
    let report = concat!(
        r#"{"containers":[{"name":"main","containerID":"containerd://main","restartCount":4,"#,
        r#""hashes":{"plainHash":1,"extractedEnvFromMetadataHash":2}}]}"#
    );
    let mut world = started(&pod(Some(report)));
    world.run(seconds(60));
    assert_eq!(reads(&world), 0);
    assert_eq!(
        world.count(|effect| matches!(
            effect,
            Effect::PatchPodStatus { .. } | Effect::StopContainer { .. }
        )),
        0
    );
}

#[test]
fn s7_7_an_entry_of_a_known_container_stays_and_only_a_missing_hash_is_filled_in() {
    let report = concat!(
        r#"{"containers":[{"name":"main","containerID":"containerd://main","restartCount":4,"#,
        r#""hashes":{"plainHash":1}}]}"#
    );
    let mut world = started(&pod(Some(report)));
    world.run(seconds(60));
    let hash = go_compat::container::environment_hash([("CFG", "v1")]);
    let written = report.replace(
        r#""plainHash":1"#,
        &format!(r#""plainHash":1,"extractedEnvFromMetadataHash":{hash}"#),
    );
    assert_eq!(
        world.pods["web"]["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"],
        written
    );
}

#[test]
fn s7_7_a_pod_of_the_initial_list_without_the_annotation_is_ignored_until_it_changes() {
    let mut world = started(&pod(None));
    world.run(seconds(60));
    assert_eq!(reads(&world), 0);
    world.put_pod("web", &json!({"metadata": {"labels": {"unrelated": "1"}}}));
    world.run(seconds(60));
    assert_eq!(reads(&world), 0, "nothing that matters has changed");
    world.put_pod("web", &json!({"metadata": {"annotations": {"config": "v2"}}}));
    world.run(seconds(60));
    assert_eq!(reads(&world), 1);
}

#[test]
fn a_pod_of_the_initial_list_that_is_being_updated_is_not_ignored() {
    let mut updating = pod(None);
    updating["status"]["conditions"] = json!([{"type": "InPlaceUpdateReady", "status": "False"}]);
    let mut world = started(&updating);
    world.run(seconds(60));
    assert_eq!(reads(&world), 1);
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::PatchPodStatus { .. })),
        1
    );
}

#[test]
fn a_node_image_of_openkruise_is_taken_over_and_nothing_is_pulled_again() {
    let tag = |tag: &str, version: i64| {
        json!({"tag": tag, "version": version, "createdAt": "2026-01-02T03:00:00Z", "imagePullPolicy": "Always",
               "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3, "ttlSecondsAfterFinished": 600}})
    };
    let succeeded = json!({"tag": "1", "phase": "Succeeded", "progress": 100, "version": 2, "imageID": "nginx@sha256:0a",
        "startTime": "2026-01-02T03:00:01Z", "completionTime": "2026-01-02T03:00:09Z"});
    let failed = json!({"tag": "2", "phase": "Failed", "message": "node has not responded for a long time",
        "completionTime": "2026-01-02T03:00:09Z"});
    let pulling = json!({"tag": "3", "phase": "Pulling", "startTime": "2026-01-02T03:00:01Z"});
    let mut world = World::unstarted(Config::new("n1"));
    world.edit(&json!({
        "spec": {"images": {"nginx": {"tags": [tag("1", 2), tag("2", 0), tag("3", 0)]}}},
        "status": {"desired": 3, "succeeded": 1, "failed": 1, "pulling": 1, "waiting": 0,
                   "imageStatuses": {"nginx": {"tags": [succeeded, failed, pulling]},
                                     "gone": {"tags": [succeeded]}}}}));
    world.restart();
    world.run(seconds(60));
    assert_eq!(world.pulled(), ["nginx:3"], "an unfinished tag is resumed");
    assert_eq!(
        (world.tag("nginx", "1"), world.tag("nginx", "2")),
        (succeeded, failed)
    );
    assert_eq!(world.status()["imageStatuses"].get("gone"), None);
    let counts = ["desired", "succeeded", "failed", "pulling"].map(|count| world.status()[count].clone());
    assert_eq!(counts, [3, 2, 1, 0].map(Value::from));
}

#[test]
fn a_manager_of_openkruise_replaces_the_whole_status_and_both_come_to_rest() {
    let mut world = World::new(Config::new("n1"));
    world.edit(&json!({"spec": {"images": {"a": {"tags": [{"tag": "1"}]}, "b": {"tags": [{"tag": "1"}]}}}}));
    world.run(seconds(30));
    // It does not know waiting, and writes what it read, with the failure of a tag that it gave up.
    let mut status = world.status().clone();
    status["imageStatuses"]["b"]["tags"][0] = json!({"tag": "1", "phase": "Failed", "message": "m",
                                                     "completionTime": "2026-01-02T03:04:20Z"});
    world.node_image["status"] = Value::Null;
    world.edit(&json!({"status": status}));
    let writes = world.status_writes().len();
    world.run(seconds(600));
    assert_eq!(world.phase("b", "1"), "Succeeded", "the agent knows better");
    assert_eq!(world.status_writes().len(), writes + 1);
}
