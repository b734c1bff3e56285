//! How much memory an agent takes for a full node. The only measurement here, because it measures the memory of the
//! whole process.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_agent_core::{Agent, Config, Effect, Event, RuntimeImage};
use serde_json::{Map, Value, json};

/// Kibibytes of memory without that of files.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find(|line| line.starts_with("RssAnon")).unwrap();
    let mut words = line.split_whitespace();
    words.nth(1).unwrap().parse().unwrap()
}

fn many(kind: &str, count: usize) -> Value {
    let one = |number| {
        (
            format!("example.com/{kind}-{number}"),
            json!(format!("value-{number}")),
        )
    };
    Value::Object((0..count).map(one).collect::<Map<_, _>>())
}

/// A pod as JSON; `NUMBER` is replaced by the number of the pod.
fn rich_pod() -> String {
    let variable = |at: usize| json!({"name": format!("VARIABLE_{at}"), "value": format!("value-{at}")});
    let container = |name: &str| {
        json!({"name": name, "image": "registry.example.com/team/app:1.2.3",
            "env": (0..10).map(variable).chain([json!({"name": "CFG",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['example.com/annotation-1']"}}})])
                .collect::<Vec<_>>()})
    };
    let status = |name: &str| json!({"name": name, "containerID": format!("containerd://{:060}NUMBER{name}", 0), "state": {"running": {}}});
    json!({"metadata": {"namespace": "shop", "name": "pod-NUMBER", "uid": "uid-NUMBER",
            "resourceVersion": "7", "labels": many("label", 12), "annotations": many("annotation", 8),
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "o",
                                 "controller": true}]},
        "spec": {"containers": [container("a"), container("b"), container("c")]},
        "status": {"containerStatuses": [status("a"), status("b"), status("c")]}})
    .to_string()
}

fn image(number: usize) -> String {
    format!("registry.example.com/team-{number}/application-{number}")
}

/// The text of a NodeImage with so many images.
fn node_image(count: usize) -> String {
    let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": "shop",
        "name": "warm-the-application", "uid": "0f6f7d6e-0000-4000-8000-000000000000"});
    let tag = json!({"tag": "1.2.3", "createdAt": "2026-01-02T03:04:00Z", "imagePullPolicy": "IfNotPresent",
        "ownerReferences": [owner], "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3}});
    let secret = json!({"namespace": "kruise-daemon-config", "name": "reg-NUMBER-0a1b2c"});
    let one = json!({"pullSecrets": [secret], "tags": [tag]}).to_string();
    let images = (0..count).map(|number| {
        let one = one.replace("NUMBER", &number.to_string());
        ["\"", &image(number), "\":", &one].concat()
    });
    let images: Vec<String> = images.collect();
    let images = images.join(",");
    format!(
        r#"{{"metadata":{{"name":"n1","uid":"u","resourceVersion":"9"}},"spec":{{"images":{{{images}}}}}}}"#
    )
}

#[test]
#[ignore = "a measurement: cargo test -p kruise-agent-core --test it -- --ignored measurements::"]
fn a_node_with_110_pods_and_300_images_takes_little_memory() {
    let now = Timestamp::UNIX_EPOCH;
    let pod = rich_pod();
    let node_image = node_image(300);
    let before = resident();
    let mut agent = Agent::new(Config::new("n1"));
    let mut effects = agent.handle(Event::RuntimesDetected(Ok(["containerd".into()].into())), now);
    let view = serde_json::from_str(&node_image).unwrap();
    effects.extend(agent.handle(Event::NodeImage(Arc::new(view)), now));
    assert!(effects.contains(&Effect::ListImages));
    let listed = (0..300).map(|number| RuntimeImage {
        id: format!("sha256:{number:064}").into(),
        tags: vec![format!("{}:1.2.3", image(number)).into()],
        digests: vec![format!("{}@sha256:{number:064}", image(number)).into()],
    });
    let effects = agent.handle(Event::ImagesListed(Ok(listed.collect())), now);
    assert_eq!(
        effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Event(_)))
            .count(),
        300
    );
    for number in 0..110 {
        let text = pod.replace("NUMBER", &number.to_string());
        let pod = Arc::new(serde_json::from_str(&text).unwrap());
        assert!(agent.handle(Event::Pod { pod, initial: false }, now).is_empty());
    }
    drop(effects);
    let taken = resident().saturating_sub(before);
    assert!(agent.next_timer().is_some());
    // The pods alone have more names and values than this: a measurement that sees nothing fails.
    assert!((64..=2 * 1024).contains(&taken), "{taken} KiB");
    println!("{taken} KiB");
}
