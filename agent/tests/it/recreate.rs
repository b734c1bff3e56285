//! ContainerRecreateRequests. The test plays the kubelet and the manager.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{Api, OLD_REQUESTS, PODS, REQUESTS};
use crate::node::{Agent, Node, settings, until};
use crate::runtime::Runtime;
use crate::wire;

/// A pod without an owner on the node, whose container has this hook; returns its UID.
fn pod(api: &Api, hook: &Value) -> String {
    let container = json!({"name": "app", "image": "app:1", "lifecycle": {"preStop": hook}});
    let pod = json!({"metadata": {"name": "web"}, "spec": {"nodeName": "n1", "containers": [container]}});
    let created = api.create(PODS, &pod);
    let status = json!({"phase": "Running", "podIP": "127.0.0.1"});
    api.merge(&format!("{PODS}/web/status"), &json!({"status": status}));
    created["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// A container of the pod, which runs since two seconds after it was created.
fn container(uid: &str, id: &str, created: Timestamp) -> wire::Container {
    let pairs = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    wire::Container {
        id: id.into(),
        metadata: Some(wire::ContainerMetadata { name: "app".into() }),
        state: 1,
        created_at: created.as_nanosecond().try_into().unwrap(),
        labels: pairs("io.kubernetes.pod.uid", uid),
        annotations: pairs("io.kubernetes.container.restartCount", "0"),
    }
}

/// A request as the webhook of the manager completes it.
fn request(name: &str, uid: &str, version: &str, strategy: &Value) -> Value {
    json!({
        "apiVersion": format!("apps.kruise.io/{version}"), "kind": "ContainerRecreateRequest",
        "metadata": {"name": name, "labels": {"crr.apps.kruise.io/active": "true",
            "crr.apps.kruise.io/node-name": "n1", "crr.apps.kruise.io/pod-uid": uid}},
        "spec": {"podName": "web", "strategy": strategy, "containers": [
            {"name": "app", "statusContext": {"containerID": "containerd://c1", "restartCount": 0}}]},
    })
}

/// A node whose pod runs the container `c1`.
async fn node(hook: &Value) -> (Node, String) {
    let node = Node::new().await;
    node.agent.says(200, "ok").await;
    let uid = pod(&node.api, hook);
    runs(&node.runtime, &uid);
    (node, uid)
}

fn runs(runtime: &Runtime, uid: &str) {
    let mut state = runtime.state();
    state.ends_when_stopped = true;
    state
        .containers
        .push(container(uid, "c1", "2026-01-01T00:00:00Z".parse().unwrap()));
}

async fn acts(runtime: &Runtime, count: usize) -> Vec<String> {
    until("acts", || (runtime.state().acts.len() >= count).then_some(())).await;
    runtime.state().acts.clone()
}

/// Waits for a phase; returns the status.
async fn phase(api: &Api, collection: &str, name: &str, phase: &str) -> Value {
    until(phase, || {
        let status = api.get(&format!("{collection}/{name}"))["status"].clone();
        (status["phase"] == phase).then_some(status)
    })
    .await
}

fn snapshot(id: &str) -> Value {
    json!([{"name": "app", "ready": true, "restartCount": 1, "containerID": format!("containerd://{id}")}])
}

#[tokio::test]
async fn s4_8_1_a_container_is_stopped_after_its_hook_and_its_successor_ends_the_request() {
    let (node, uid) = node(&json!({"exec": {"command": ["say", "bye"]}})).await;
    node.api
        .create(REQUESTS, &request("r", &uid, "v1beta1", &json!({})));
    assert_eq!(acts(&node.runtime, 2).await, ["c1: say bye", "c1: stop"]);
    let killed = until("isKilled", || {
        let status = node.api.get(&format!("{REQUESTS}/r"))["status"].clone();
        (status["containerRecreateStates"][0]["isKilled"] == true).then_some(status)
    })
    .await;
    assert_eq!(
        (&killed["phase"], &killed["containerRecreateStates"][0]["phase"]),
        (&json!("Recreating"), &json!("Recreating"))
    );
    let event = until("event", || node.api.events("Killing").pop()).await;
    assert_eq!(
        event["message"],
        "Stopping container app by ContainerRecreateRequest r"
    );
    assert_eq!(event["involvedObject"]["fieldPath"], "spec.containers{app}");
    assert_eq!(event["involvedObject"]["uid"], uid);
    assert_eq!(
        event["source"],
        json!({"component": "kruise-daemon-crr", "host": "n1"})
    );

    let successor = container(&uid, "c2", "2026-01-01T01:00:00Z".parse().unwrap());
    node.runtime.state().containers.push(successor);
    let patch = json!({"status": {"containerStatusSnapshot": snapshot("c2")}});
    node.api.merge(&format!("{REQUESTS}/r/status"), &patch);
    let status = phase(&node.api, REQUESTS, "r", "Completed").await;
    assert!(status["completionTime"].is_string(), "{status}");
    assert_eq!(
        status["containerRecreateStates"],
        json!([{"name": "app", "phase": "Succeeded", "isKilled": true}])
    );
    assert_eq!(
        status["containerStatusSnapshot"],
        snapshot("c2"),
        "the manager's part stays"
    );
    assert_eq!(node.runtime.state().acts.len(), 2);
    let (_, metrics) = node.agent.page("/metrics").await;
    for line in [
        "kruise_daemon_pre_stop_hooks_total{result=\"succeeded\"} 1",
        "kruise_daemon_runtime_calls_total{call=\"stop_container\",result=\"succeeded\"} 1",
        "kruise_daemon_status_writes_total{resource=\"containerrecreaterequests\",result=\"succeeded\"} 3",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn s4_8_3_the_time_that_a_container_must_run_begins_with_its_start_and_not_with_its_creation() {
    let (node, uid) = node(&Value::Null).await;
    let strategy = json!({"minStartedSeconds": 3});
    node.api
        .create(REQUESTS, &request("r", &uid, "v1beta1", &strategy));
    acts(&node.runtime, 1).await;
    let created = Timestamp::now();
    node.runtime
        .state()
        .containers
        .push(container(&uid, "c2", created));
    let patch = json!({"status": {"containerStatusSnapshot": snapshot("c2")}});
    node.api.merge(&format!("{REQUESTS}/r/status"), &patch);
    phase(&node.api, REQUESTS, "r", "Completed").await;
    let took = Timestamp::now().duration_since(created);
    assert!(took.as_secs_f64() >= 5.0, "{took:#}");
}

#[tokio::test]
async fn s4_8_10_of_two_requests_for_a_pod_the_second_runs_when_the_first_has_ended() {
    let (node, uid) = node(&Value::Null).await;
    node.api
        .create(REQUESTS, &request("a", &uid, "v1beta1", &json!({})));
    acts(&node.runtime, 1).await;
    let force = json!({"forceRecreate": true});
    node.api.create(REQUESTS, &request("b", &uid, "v1beta1", &force));
    let status = phase(&node.api, REQUESTS, "b", "Pending").await;
    assert_eq!(
        status["message"],
        "Waiting for ContainerRecreateRequest a of the same pod"
    );
    let successor = container(&uid, "c2", "2026-01-01T01:00:00Z".parse().unwrap());
    node.runtime.state().containers.push(successor);
    let patch = json!({"status": {"containerStatusSnapshot": snapshot("c2")}});
    node.api.merge(&format!("{REQUESTS}/a/status"), &patch);
    phase(&node.api, REQUESTS, "a", "Completed").await;
    // The manager takes the label away, with which the watch loses the request.
    let inactive = json!({"metadata": {"labels": {"crr.apps.kruise.io/active": null}}});
    node.api.merge(&format!("{REQUESTS}/a"), &inactive);
    assert_eq!(acts(&node.runtime, 2).await, ["c1: stop", "c2: stop"]);
}

#[tokio::test]
async fn s4_8_4_where_only_the_older_version_is_served_its_annotations_say_what_the_manager_has_done() {
    let (folder, mut api) = Node::parts().await;
    api.define_oldest();
    api.answer();
    let runtime = Runtime::start(&folder.file("cri.sock"));
    let uid = pod(&api, &Value::Null);
    runs(&runtime, &uid);
    let strategy = json!({"unreadyGracePeriodSeconds": 1});
    api.create(OLD_REQUESTS, &request("r", &uid, "v1alpha1", &strategy));
    let agent = Agent::start(settings(&folder, &api)).await;
    agent.says(200, "ok").await;
    let status = phase(&api, OLD_REQUESTS, "r", "Recreating").await;
    assert_eq!(
        status["message"],
        "Waiting for the manager to take the pod out of service"
    );
    assert_eq!(runtime.state().acts.len(), 0);
    let annotate = |key: &str, value: &str| {
        let annotations = json!({key: value});
        let patch = json!({"metadata": {"annotations": annotations}});
        api.merge(&format!("{OLD_REQUESTS}/r"), &patch);
    };
    let now = Timestamp::now();
    annotate("crr.apps.kruise.io/unready-acquired", &now.to_string());
    acts(&runtime, 1).await;
    let waited = Timestamp::now().duration_since(now);
    assert!(waited.as_secs_f64() >= 1.0, "{waited:#}");
    let successor = container(&uid, "c2", "2026-01-01T01:00:00Z".parse().unwrap());
    runtime.state().containers.push(successor);
    annotate(
        "crr.apps.kruise.io/sync-container-statuses",
        &snapshot("c2").to_string(),
    );
    phase(&api, OLD_REQUESTS, "r", "Completed").await;
    agent.end().await;
}

#[tokio::test]
async fn s4_7_an_agent_that_starts_after_a_stop_does_not_stop_the_successor() {
    let (node, uid) = node(&Value::Null).await;
    let force = json!({"forceRecreate": true});
    node.api.create(REQUESTS, &request("r", &uid, "v1beta1", &force));
    acts(&node.runtime, 1).await;
    let Node {
        folder,
        api,
        runtime,
        agent,
    } = node;
    // It may end before it has reported the stop.
    agent.end().await;
    let successor = container(&uid, "c2", "2026-01-01T01:00:00Z".parse().unwrap());
    runtime.state().containers.push(successor);
    let patch = json!({"status": {"containerStatusSnapshot": snapshot("c2")}});
    api.merge(&format!("{REQUESTS}/r/status"), &patch);
    let _agent = Agent::start(settings(&folder, &api)).await;
    let status = phase(&api, REQUESTS, "r", "Completed").await;
    assert_eq!(status["containerRecreateStates"][0]["isKilled"], true);
    assert_eq!(runtime.state().acts, ["c1: stop"]);
}

#[tokio::test]
async fn requests_for_other_nodes_are_not_seen() {
    let (node, uid) = node(&Value::Null).await;
    let mut other = request("other", &uid, "v1beta1", &json!({}));
    other["metadata"]["labels"]["crr.apps.kruise.io/node-name"] = "n2".into();
    node.api.create(REQUESTS, &other);
    let mut inactive = request("inactive", &uid, "v1beta1", &json!({}));
    inactive["metadata"]["labels"]["crr.apps.kruise.io/active"] = "false".into();
    node.api.create(REQUESTS, &inactive);
    node.api
        .create(REQUESTS, &request("own", &uid, "v1beta1", &json!({})));
    acts(&node.runtime, 1).await;
    for name in ["other", "inactive"] {
        assert_eq!(node.api.get(&format!("{REQUESTS}/{name}")).get("status"), None);
    }
}
