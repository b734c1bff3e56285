//! Probes. The test plays the kubelet and the manager.

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::api::{Api, NODE_POD_PROBES, PODS};
use crate::node::{Agent, Node, settings, until};
use crate::runtime::Runtime;
use crate::wire;

/// A pod on the node; returns its UID.
fn pod(api: &Api) -> String {
    let pod = json!({"metadata": {"name": "web"}, "spec": {"nodeName": "n1",
        "containers": [{"name": "app", "image": "app:1"}]}});
    api.create(PODS, &pod)["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn container(uid: &str, id: &str, created: Timestamp) -> wire::Container {
    let labels = [("io.kubernetes.pod.uid".to_owned(), uid.to_owned())].into();
    wire::Container {
        id: id.into(),
        metadata: Some(wire::ContainerMetadata { name: "app".into() }),
        state: 1,
        created_at: created.as_nanosecond().try_into().unwrap(),
        labels,
        ..wire::Container::default()
    }
}

/// What the manager writes for a pod with these probes.
fn spec(uid: &str, probes: &Value) -> Value {
    json!({"podProbes": [{"name": "web", "namespace": "shop", "uid": uid, "IP": "127.0.0.1", "probes": probes}]})
}

fn probe(name: &str, probe: &Value) -> Value {
    json!({"name": name, "containerName": "app", "probe": probe})
}

/// A node whose pod runs the container `c1` and is probed.
async fn node(probes: &Value) -> (Node, String) {
    let node = Node::new().await;
    node.agent.says(200, "ok").await;
    let uid = pod(&node.api);
    let before = "2026-01-01T00:00:00Z".parse().unwrap();
    node.runtime
        .state()
        .containers
        .push(container(&uid, "c1", before));
    node.api.create(
        NODE_POD_PROBES,
        &json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodePodProbe", "metadata": {"name": "n1"},
                "spec": spec(&uid, probes)}),
    );
    (node, uid)
}

fn statuses(api: &Api) -> Vec<Value> {
    let status = api.get(&format!("{NODE_POD_PROBES}/n1"))["status"].clone();
    status["podProbeStatuses"].as_array().cloned().unwrap_or_default()
}

/// Waits for the state and the message of a probe; returns all of it.
async fn until_state(api: &Api, name: &str, state: &str, message: &str) -> Value {
    until(&format!("{name} is {state} {message}"), || {
        let statuses = statuses(api);
        let states = statuses.first()?["probeStates"].as_array()?.clone();
        let found = states.into_iter().find(|one| one["name"] == name)?;
        let is_it = found["state"] == state && found["message"].as_str().unwrap_or_default() == message;
        is_it.then_some(found)
    })
    .await
}

#[tokio::test]
async fn s5_8_1_commands_run_in_the_container_and_their_results_are_reported_with_events() {
    let idle = json!([probe(
        "m#idle",
        &json!({"exec": {"command": ["idle", "now"]}, "failureThreshold": 2})
    )]);
    let (node, uid) = node(&idle).await;
    let state = until_state(&node.api, "m#idle", "Succeeded", "").await;
    assert!(
        state["lastProbeTime"].is_string() && state["lastTransitionTime"].is_string(),
        "{state}"
    );
    let status = statuses(&node.api);
    assert_eq!(
        (&status[0]["namespace"], &status[0]["name"], &status[0]["uid"]),
        (&json!("shop"), &json!("web"), &json!(uid))
    );
    assert_eq!(node.runtime.state().acts[0], "c1: idle now");
    node.runtime
        .state()
        .commands
        .insert("idle now".into(), (1, "busy".into()));
    until_state(&node.api, "m#idle", "Failed", "busy").await;
    let event = until("event", || node.api.events("KruiseProbeFailed").pop()).await;
    assert_eq!(
        (&event["message"], &event["type"]),
        (&json!("busy"), &json!("Warning"))
    );
    assert_eq!(event["involvedObject"]["uid"], uid);
    assert_eq!(
        event["source"],
        json!({"component": "kruise-daemon-podprobe", "host": "n1"})
    );
    assert_eq!(node.api.events("KruiseProbeSucceeded").len(), 1);
    let (_, metrics) = node.agent.page("/metrics").await;
    for line in [
        "kruise_daemon_probes_total{handler=\"exec\",result=\"succeeded\"} ",
        "kruise_daemon_probes_total{handler=\"exec\",result=\"failed\"} ",
        "kruise_daemon_status_writes_total{resource=\"nodepodprobes\",result=\"succeeded\"} 2",
    ] {
        assert!(
            metrics.lines().any(|one| one.starts_with(line)),
            "{line}\n{metrics}"
        );
    }
}

#[tokio::test]
async fn s5_8_3_requests_and_connections_reach_the_pod_and_a_wrong_port_fails_until_it_is_corrected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let wrong = closed.local_addr().unwrap().port();
    drop(closed);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut text = String::new();
                // A connection of the other probe ends without a request.
                while let Ok(byte) = stream.read_u8().await {
                    text.push(char::from(byte));
                    if text.ends_with("\r\n\r\n") {
                        let code = if text.starts_with("GET /good ") { 200 } else { 500 };
                        let answer = format!("HTTP/1.1 {code} So\r\nContent-Length: 4\r\n\r\nbody");
                        stream.write_all(answer.as_bytes()).await.unwrap();
                        return;
                    }
                }
            });
        }
    });
    let probes = |path: &str, port_of_tcp: u16| {
        json!([
            probe(
                "m#get",
                &json!({"httpGet": {"path": path, "port": port, "scheme": "HTTP"}})
            ),
            probe("m#connect", &json!({"tcpSocket": {"port": port_of_tcp}})),
        ])
    };
    let (node, uid) = node(&probes("/bad", wrong)).await;
    until_state(
        &node.api,
        "m#get",
        "Failed",
        "HTTP probe failed with statuscode: 500",
    )
    .await;
    let failed = until("m#connect", || {
        let states = statuses(&node.api).first()?["probeStates"].as_array()?.clone();
        states.into_iter().find(|one| one["name"] == "m#connect")
    })
    .await;
    assert_eq!(failed["state"], "Failed");
    assert!(
        failed["message"].as_str().unwrap().contains("refused"),
        "{failed}"
    );
    let corrected = json!({"spec": spec(&uid, &probes("/good", port))});
    node.api.merge(&format!("{NODE_POD_PROBES}/n1"), &corrected);
    until_state(&node.api, "m#get", "Succeeded", "body").await;
    until_state(&node.api, "m#connect", "Succeeded", "").await;
}

#[tokio::test]
async fn s6_8_4_a_container_that_begins_anew_is_unknown_and_then_probed_in_its_own_right() {
    let slow = json!({"exec": {"command": ["idle"]}, "initialDelaySeconds": 3});
    let (node, uid) = node(&json!([probe("m#idle", &slow)])).await;
    until_state(&node.api, "m#idle", "Succeeded", "").await;
    {
        let mut state = node.runtime.state();
        state.containers[0].state = 2;
        state.commands.insert("idle".into(), (0, "new".into()));
    }
    until_state(&node.api, "m#idle", "Failed", "Container(app) is Non-running").await;
    let begins = Timestamp::now();
    node.runtime
        .state()
        .containers
        .push(container(&uid, "c2", begins));
    until_state(&node.api, "m#idle", "Unknown", "").await;
    until_state(&node.api, "m#idle", "Succeeded", "new").await;
    // It starts two seconds after it was created.
    let took = Timestamp::now().duration_since(begins).as_secs_f64();
    assert!(took >= 5.0, "{took}");
}

#[tokio::test]
async fn s5_8_5_a_probe_that_is_removed_runs_no_more_and_its_result_leaves() {
    let probes = |names: &[&str]| {
        let one = |name: &&str| probe(&format!("m#{name}"), &json!({"exec": {"command": [name]}}));
        names.iter().map(one).collect::<Value>()
    };
    let (node, uid) = node(&probes(&["one", "two"])).await;
    until_state(&node.api, "m#one", "Succeeded", "").await;
    until_state(&node.api, "m#two", "Succeeded", "").await;
    let patch = json!({"spec": spec(&uid, &probes(&["two"]))});
    node.api.merge(&format!("{NODE_POD_PROBES}/n1"), &patch);
    until("the result leaves", || {
        let states = statuses(&node.api)[0]["probeStates"].as_array()?.clone();
        (states.len() == 1 && states[0]["name"] == "m#two").then_some(())
    })
    .await;
    node.runtime.state().acts.clear();
    until("two more runs", || {
        (node.runtime.state().acts.len() >= 2).then_some(())
    })
    .await;
    assert!(node.runtime.state().acts.iter().all(|act| act == "c1: two"));
}

#[tokio::test]
async fn s7_12_10_an_agent_that_starts_anew_keeps_the_results_and_writes_nothing() {
    let (node, _) = node(&json!([probe("m#idle", &json!({"exec": {"command": ["idle"]}}))])).await;
    until_state(&node.api, "m#idle", "Succeeded", "").await;
    let Node {
        folder,
        api,
        runtime,
        agent,
    } = node;
    agent.end().await;
    let version =
        |api: &Api| api.get(&format!("{NODE_POD_PROBES}/n1"))["metadata"]["resourceVersion"].clone();
    let before = version(&api);
    runtime.state().acts.clear();
    let _agent = Agent::start(settings(&folder, &api)).await;
    until("more runs", || (runtime.state().acts.len() >= 3).then_some(())).await;
    assert_eq!(version(&api), before);
}

#[tokio::test]
async fn a_container_whose_status_cannot_be_read_does_not_stop_the_probes_of_others() {
    let node = Node::new().await;
    node.agent.says(200, "ok").await;
    let uid = pod(&node.api);
    let created: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut broken = container(&uid, "c0", created);
    broken.metadata = Some(wire::ContainerMetadata { name: "a".into() });
    node.runtime.state().unreadable.insert("c0".into());
    node.runtime
        .state()
        .containers
        .extend([broken, container(&uid, "c1", created)]);
    let probes = json!([
        {"name": "m#broken", "containerName": "a", "probe": {"exec": {"command": ["a"]}}},
        probe("m#idle", &json!({"exec": {"command": ["idle"]}})),
    ]);
    let object = json!({"metadata": {"name": "n1"}, "spec": spec(&uid, &probes)});
    node.api.create(NODE_POD_PROBES, &object);
    until_state(&node.api, "m#idle", "Succeeded", "").await;
    until_state(&node.api, "m#broken", "Succeeded", "").await;
}

#[tokio::test]
async fn s7_6_without_the_gate_no_probe_is_run_and_nothing_is_waited_for() {
    let (folder, mut api) = Node::parts().await;
    api.define();
    api.answer();
    let runtime = Runtime::start(&folder.file("cri.sock"));
    let uid = pod(&api);
    runtime
        .state()
        .containers
        .push(container(&uid, "c1", "2026-01-01T00:00:00Z".parse().unwrap()));
    let probes = json!([probe("m#idle", &json!({"exec": {"command": ["idle"]}}))]);
    let object = json!({"metadata": {"name": "n1"}, "spec": spec(&uid, &probes)});
    api.create(NODE_POD_PROBES, &object);
    let mut off = settings(&folder, &api);
    off.runs_probes = false;
    let agent = Agent::start(off).await;
    agent.says(200, "ok").await;
    let audit = std::fs::read_to_string(folder.file("audit")).unwrap();
    assert!(
        audit.contains("nodeimages") && !audit.contains("nodepodprobes?"),
        "{audit}"
    );
    assert!(runtime.state().acts.is_empty());
}
