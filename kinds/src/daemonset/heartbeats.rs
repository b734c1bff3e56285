//! What heartbeats of nodes cost: their lines are decoded, and nothing follows.

use std::{
    hint::black_box,
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use kruise_api::daemonset::DaemonSet;
use kruise_views::NodeView;
use kube_cache::{Effect, Input, Reflector, SharedInformer, WatchInput, wire::decode_watch_line};
use serde_json::{Value, json};

use super::keys;
use crate::placing::Placing;
use kruise_runtime::parsed::Parsed;

/// Nodes of the cluster.
const COUNT: usize = 50;
/// Heartbeats of each in a round.
const BEATS: usize = 4;
/// The cheapest of these rounds counts: it is the one that nobody else disturbed.
const ROUNDS: usize = 12;
/// The whole way may cost this much of decoding alone.
const BAR: f64 = 1.5;

fn node(number: usize, version: usize) -> Value {
    let images: Vec<Value> = (0..50)
        .map(|image| {
            let digest = format!(
                "registry.example.com/team/app-{image}@sha256:{:064x}",
                image * 7919
            );
            json!({"names": [digest, format!("registry.example.com/team/app-{image}:v1.{image}.0")],
                "sizeBytes": 50_000_000 + image})
        })
        .collect();
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "KubeletReports", "message": "kubelet reports this",
            "lastHeartbeatTime": format!("2026-01-01T00:{:02}:{:02}Z", version / 60 % 60, version % 60),
            "lastTransitionTime": "2025-12-01T00:00:00Z"})
    };
    json!({
        "kind": "Node", "apiVersion": "v1",
        "metadata": {"name": format!("node-{number}"), "uid": format!("uid-{number}"),
            "resourceVersion": version.to_string(), "creationTimestamp": "2025-12-01T00:00:00Z",
            "labels": {"kubernetes.io/hostname": format!("node-{number}"), "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": "a", "pool": "b"},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": format!("cloud://{number}"),
            "taints": [{"key": "dedicated", "value": "yes", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "32", "memory": "256Gi", "pods": "110"},
            "allocatable": {"cpu": "31", "memory": "250Gi", "pods": "110"},
            "conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                condition("PIDPressure", "False"), condition("Ready", "True")],
            "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}, {"type": "Hostname", "address": "node"}],
            "nodeInfo": {"kubeletVersion": "v1.34.2", "osImage": "Linux", "architecture": "amd64"},
            "images": images,
        },
    })
}

fn line(node: &Value) -> Vec<u8> {
    format!("{{\"type\":\"MODIFIED\",\"object\":{node}}}\n").into_bytes()
}

fn sets() -> Vec<Arc<Parsed<Placing<DaemonSet>>>> {
    let set = |name: &str, selector: Value| {
        let set = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
            "spec": {"selector": {"matchLabels": {"app": name}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"selector": {"matchLabels": {"pool": "b"}}}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"nodeSelector": selector,
                    "tolerations": [{"key": "dedicated", "operator": "Exists"}]}}},
        });
        Arc::new(serde_json::from_value(set).unwrap())
    };
    vec![
        set("all", json!({})),
        set("pool", json!({"pool": "b"})),
        set("other", json!({"pool": "c"})),
    ]
}

/// What is between a watch and the queue of the controller.
struct Pipeline {
    reflector: Reflector,
    informer: SharedInformer<NodeView>,
    sets: Vec<Arc<Parsed<Placing<DaemonSet>>>>,
}

impl Pipeline {
    /// It has listed these nodes, and watches them.
    fn of(nodes: &[Value], version: usize) -> Self {
        let mut pipeline = Self {
            reflector: Reflector::new(),
            informer: SharedInformer::new(std::iter::empty()),
            sets: sets(),
        };
        pipeline.step(Input::Start);
        pipeline.step(Input::Page {
            items: nodes
                .iter()
                .map(|node| serde_json::from_str(&node.to_string()).unwrap())
                .collect(),
            version: version.to_string().parse().unwrap(),
            continue_token: None,
        });
        pipeline.step(Input::ListAccepted);
        assert_eq!(pipeline.informer.snapshot().iter().count(), nodes.len());
        pipeline
    }

    /// The number of DaemonSets that are enqueued.
    fn step(&mut self, input: Input<NodeView>) -> usize {
        let mut enqueued = 0;
        for effect in self.reflector.step(input, 0) {
            let Effect::Inform(event) = effect else { continue };
            for delta in self.informer.apply(event).unwrap() {
                enqueued += keys::of_node(&delta, &|| self.sets.clone()).len();
            }
        }
        enqueued
    }
}

/// Lines of heartbeats as a watch sends them, after this version.
fn beats(version: usize) -> Vec<Vec<u8>> {
    (0..COUNT * BEATS)
        .map(|beat| line(&node(beat % COUNT, version + beat + 1)))
        .collect()
}

#[test]
fn heartbeats_of_nodes_cause_no_plan() {
    let listed: Vec<Value> = (0..COUNT).map(|number| node(number, number + 1)).collect();
    let mut pipeline = Pipeline::of(&listed, COUNT + 1);
    for line in beats(COUNT + 1) {
        assert_eq!(pipeline.step(decode_watch_line(&line, &mut |_| {}).unwrap()), 0);
    }
    // A change that matters enqueues all three sets.
    let mut changed = node(0, COUNT * (BEATS + 1) + 2);
    changed["metadata"]["labels"]["pool"] = json!("c");
    let event = Input::Watch(WatchInput::Modified(
        serde_json::from_str(&changed.to_string()).unwrap(),
    ));
    assert_eq!(pipeline.step(event), 3);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a measurement is of real time")]
#[ignore = "a measurement: cargo test -p kruise --lib heartbeats -- --ignored --nocapture"]
fn heartbeats_of_nodes_cost_little_more_than_their_decoding() {
    let listed: Vec<Value> = (0..COUNT).map(|number| node(number, number + 1)).collect();
    let mut version = COUNT + 1;
    let mut pipeline = Pipeline::of(&listed, version);
    let (mut decoding, mut all) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let lines = beats(version);
        version += lines.len();
        let began = Instant::now();
        for line in &lines {
            black_box(decode_watch_line::<NodeView>(line, &mut |_| {}).unwrap());
        }
        let decoded = Instant::now();
        for line in &lines {
            black_box(pipeline.step(decode_watch_line(line, &mut |_| {}).unwrap()));
        }
        all = all.min(decoded.elapsed());
        decoding = decoding.min(decoded - began);
    }
    let ratio = all.as_secs_f64() / decoding.as_secs_f64();
    let figures = format!(
        "{} heartbeats of {} bytes: decoding {decoding:?}, all {all:?}: {ratio:.3} of decoding alone",
        COUNT * BEATS,
        line(&node(0, version)).len()
    );
    writeln!(std::io::stdout(), "{figures}").unwrap();
    assert!(ratio <= BAR, "{figures}");
}
