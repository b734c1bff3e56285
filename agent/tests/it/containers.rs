//! What the containers of pods run with.

use go_compat::container::environment_hash;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::api::{Api, PODS};
use crate::node::{Node, until};
use crate::wire;

const META: &str = "apps.kruise.io/runtime-containers-meta";

/// A pod with sidecars on the node, whose container reads an annotation; returns its UID.
fn pod(api: &Api, value: &str) -> String {
    let variable =
        json!({"name": "CFG", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['config']"}}});
    let annotations = json!({"config": value, "kruise.io/sidecarset-hash": "{}"});
    let pod = json!({"metadata": {"name": "web", "annotations": annotations},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "app:1", "env": [variable]}]}});
    let created = api.create(PODS, &pod);
    created["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// The kubelet reports a running container.
fn runs(api: &Api, id: &str) {
    let status = json!({"name": "main", "image": "app:1", "imageID": "", "ready": true, "restartCount": 0,
        "containerID": format!("containerd://{id}"), "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
    let patch = json!({"status": {"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": [status]}});
    api.merge(&format!("{PODS}/web/status"), &patch);
}

/// A container of the pod, which runs, with this hook.
fn container(uid: &str, id: &str, hook: &Value) -> wire::Container {
    let pairs = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    wire::Container {
        id: id.into(),
        metadata: Some(wire::ContainerMetadata { name: "main".into() }),
        state: 1,
        created_at: 1,
        labels: pairs(&[("io.kubernetes.pod.uid", uid)]),
        annotations: pairs(&[
            ("io.kubernetes.container.hash", "19fd3bfc"),
            ("io.kubernetes.container.restartCount", "2"),
            ("io.kubernetes.pod.terminationGracePeriod", "20"),
            ("io.kubernetes.container.preStopHandler", &hook.to_string()),
        ]),
    }
}

/// What is reported, once it is there.
async fn report(api: &Api, id: &str) -> Value {
    until("report", || {
        let pod = api.get(&format!("{PODS}/web"));
        let text = pod["metadata"]["annotations"][META].as_str()?;
        let report: Value = serde_json::from_str(text).unwrap();
        (report["containers"][0]["containerID"] == format!("containerd://{id}")).then_some(report)
    })
    .await
}

/// A node with the pod, whose container `c1` is reported to have read `v1`. The pod then becomes one that reads
/// `v2`, and is updated in place.
async fn outdated(hook: &Value) -> (Node, String) {
    let node = Node::new().await;
    node.agent.says(200, "ok").await;
    let uid = pod(&node.api, "v1");
    {
        let mut state = node.runtime.state();
        state.containers.push(container(&uid, "c1", hook));
        state
            .environments
            .insert("c1".into(), "PATH=/bin\nCFG=v1\n".into());
    }
    runs(&node.api, "c1");
    let first = report(&node.api, "c1").await;
    assert_eq!(
        first,
        json!({"containers": [{"name": "main", "containerID": "containerd://c1", "restartCount": 2,
            "hashes": {"plainHash": 0x19fd_3bfc, "extractedEnvFromMetadataHash": environment_hash([("CFG", "v1")])}}]})
    );
    assert!(node.runtime.state().acts.is_empty(), "nothing is stopped before");
    let condition = json!({"type": "InPlaceUpdateReady", "status": "False"});
    node.api.merge(
        &format!("{PODS}/web/status"),
        &json!({"status": {"conditions": [condition]}}),
    );
    node.api.merge(
        &format!("{PODS}/web"),
        &json!({"metadata": {"annotations": {"config": "v2"}}}),
    );
    (node, uid)
}

#[tokio::test]
async fn s7_12_9_a_container_with_an_outdated_environment_is_stopped_and_its_successor_is_reported() {
    let hook = json!({"exec": {"command": ["say", "bye"]}});
    let (node, uid) = outdated(&hook).await;
    until("stop", || (node.runtime.state().acts.len() >= 2).then_some(())).await;
    assert_eq!(node.runtime.state().acts[..2], ["c1: say bye", "c1: stop"]);
    let event = until("event", || node.api.events("Killing").pop()).await;
    assert_eq!(event["involvedObject"]["fieldPath"], "spec.containers{main}");
    assert_eq!(event["involvedObject"]["uid"], uid);
    assert_eq!(
        event["source"],
        json!({"component": "kruise-daemon-containermeta", "host": "n1"})
    );

    // What a kubelet does then.
    {
        let mut state = node.runtime.state();
        state.containers[0].state = 2;
        let mut successor = container(&uid, "c2", &hook);
        successor.created_at = 2;
        state.containers.push(successor);
        state
            .environments
            .insert("c2".into(), "PATH=/bin\nCFG=v2\n".into());
    }
    runs(&node.api, "c2");
    let second = report(&node.api, "c2").await;
    let hash = &second["containers"][0]["hashes"]["extractedEnvFromMetadataHash"];
    assert_eq!(*hash, environment_hash([("CFG", "v2")]));
    assert_eq!(node.runtime.state().acts.len(), 2, "nothing else was stopped");
}

#[tokio::test]
async fn s7_7_a_hook_may_be_a_request_to_the_pod() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") {
            text.push(char::from(stream.read_u8().await.unwrap()));
        }
        stream
            .write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
            .await
            .unwrap();
        text
    });
    let headers = json!([{"name": "X-Bye", "value": "now"}]);
    let hook = json!({"httpGet": {"path": "/bye?a=b", "port": port, "httpHeaders": headers}});
    let (node, _) = outdated(&hook).await;
    until("stop", || (!node.runtime.state().acts.is_empty()).then_some(())).await;
    let request = asked.await.unwrap();
    assert!(request.starts_with("GET /bye?a=b HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("x-bye: now\r\n"), "{request}");
    assert!(
        request.contains(&format!("host: 127.0.0.1:{port}\r\n")),
        "{request}"
    );
    assert!(
        node.api.events("FailedPreStopHook").is_empty(),
        "any response is a success"
    );
}
