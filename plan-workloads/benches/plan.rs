//! How long a plan takes, and what a pod costs in memory: `cargo bench -p kruise-plan-workloads`.
//!
//! Pods are rich: three containers with ten variables each, twelve labels, eight annotations. Bytes per pod are the
//! slope of the resident set from 10,000 to 50,000 pods.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::{collections::BTreeMap, fs, hint::black_box, sync::Arc};

use jiff::Timestamp;
use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::{Memory, Plan, Template, ledger::Budgets, revision};
use kruise_plan_workloads::cloneset::{Claims, Explain, Options, Snapshot, plan};
use kruise_views::{PodView, RevisionView};
use serde_json::{Value, json};

const RUNS: usize = 20;
/// Plans in one run: the clock of CPU time may tick in milliseconds.
const PLANS: u64 = 5;
const NOW: &str = "2026-01-01T01:00:00Z";

fn template(image: &str) -> Value {
    let env: Vec<Value> = (0..10)
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": format!("value number {n}")}))
        .collect();
    let containers: Vec<Value> = ["main", "log", "proxy"]
        .iter()
        .map(|name| json!({"name": name, "image": image, "env": env, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}))
        .collect();
    let mut labels: BTreeMap<String, String> = (0..7)
        .map(|n| (format!("example.com/label-{n}"), format!("value-{n}")))
        .collect();
    labels.insert("app".into(), "web".into());
    let annotations: BTreeMap<String, String> = (0..6)
        .map(|n| {
            (
                format!("example.com/annotation-{n}"),
                "some text of a usual length".into(),
            )
        })
        .collect();
    json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": containers}})
}

fn set(replicas: usize, image: &str, policy: &str, current: &str) -> CloneSet {
    let status = json!({"observedGeneration": 1, "currentRevision": current, "replicas": replicas});
    serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "metadata": {"name": "web", "namespace": "shop", "uid": "set-uid", "resourceVersion": "1", "generation": 1},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template(image),
                 "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                     "podUpdatePolicy": policy, "maxUnavailable": "20%", "partition": 0}}},
        "status": status,
    }))
    .unwrap()
}

fn pod(index: usize, image: &str, revision_name: &str) -> Arc<PodView> {
    let mut pod = template(image);
    let (name, ready) = (format!("web-{index:05}"), "2026-01-01T00:00:00Z");
    let labels = &mut pod["metadata"]["labels"];
    labels["controller-revision-hash"] = json!(revision_name);
    labels["pod-template-hash"] = json!(revision::short_hash(revision_name));
    labels["lifecycle.apps.kruise.io/state"] = json!("Normal");
    labels["apps.kruise.io/cloneset-instance-id"] = json!(format!("{index:05}"));
    pod["metadata"]["annotations"]["lifecycle.apps.kruise.io/timestamp"] = json!(ready);
    pod["metadata"]["annotations"]["example.com/network"] = json!("10.0.0.1");
    for (key, value) in [
        ("name", json!(name)),
        ("namespace", json!("shop")),
        ("uid", json!(format!("uid-of-{name}-with-the-usual-length"))),
        ("resourceVersion", json!(format!("{}", 1000 + index))),
        ("creationTimestamp", json!(ready)),
        (
            "ownerReferences",
            json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web",
                                                     "uid": "set-uid", "controller": true}]),
        ),
    ] {
        pod["metadata"][key] = value;
    }
    pod["spec"]["nodeName"] = json!(format!("node-{}", index % 500));
    pod["spec"]["readinessGates"] =
        json!([{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]);
    let conditions: Vec<Value> = [
        "Initialized",
        "PodScheduled",
        "Ready",
        "ContainersReady",
        "InPlaceUpdateReady",
        "KruisePodReady",
    ]
    .iter()
    .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": ready}))
    .collect();
    let statuses: Vec<Value> = ["main", "log", "proxy"]
        .iter()
        .map(|name| {
            json!({"name": name, "image": image, "imageID": format!("sha256:{:064}", index), "ready": true,
                           "containerID": format!("containerd://{index:064}"), "restartCount": 0})
        })
        .collect();
    pod["status"] = json!({"phase": "Running", "conditions": conditions, "containerStatuses": statuses});
    Arc::new(serde_json::from_str(&pod.to_string()).unwrap())
}

fn stored(image: &str, number: i64) -> Arc<RevisionView> {
    let name = revision::identity("web", &Template::live(&template(image)), 0).0;
    let data = go_compat::pod_template::revision_data(&template(image));
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"shop","uid":"r{number}","resourceVersion":"{number}"}},"data":{data},"revision":{number}}}"#
    );
    Arc::new(serde_json::from_str(&text).unwrap())
}

fn once(set: &CloneSet, pods: &[Arc<PodView>], revisions: &[Arc<RevisionView>], now: Timestamp) -> Plan {
    plan(
        &Snapshot {
            set,
            api_version: "apps.kruise.io/v1beta1",
            pods,
            claims: &Claims::default(),
            revisions,
            pull_jobs: &[],
            node: &|_| None,
            budgets: Budgets::NONE,
            options: Options::DEFAULT,
            memory: &Memory::default(),
            explain: Explain::No,
        },
        now,
    )
}

fn measure(what: &str, set: &CloneSet, pods: &[Arc<PodView>], revisions: &[Arc<RevisionView>]) {
    // cargo passes `--bench`; what else is given selects.
    let mut wanted = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    if !wanted.all(|word| what.contains(&word)) {
        return;
    }
    let now: Timestamp = NOW.parse().unwrap();
    let mut times: Vec<u64> = (0..RUNS)
        .map(|_| {
            let start = on_cpu();
            for _ in 0..PLANS {
                black_box(once(set, pods, revisions, now));
            }
            (on_cpu() - start) / PLANS
        })
        .collect();
    times.sort_unstable();
    let writes = once(set, pods, revisions, now).writes.len();
    let (median, worst) = (times[RUNS / 2] as f64 / 1e6, times[RUNS - 1] as f64 / 1e6);
    println!(
        "{:>6} pods  {what:<22} {median:8.2} ms  (worst {worst:.2})  {writes} writes",
        pods.len()
    );
}

/// Nanoseconds that this thread has run: neighbours on the machine do not show.
fn on_cpu() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

fn resident_bytes() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn main() {
    let revisions = [stored("web:1", 1), stored("web:2", 2)];
    let (old, new) = (revisions[0].name.to_string(), revisions[1].name.to_string());
    let mut pods: Vec<Arc<PodView>> = Vec::with_capacity(50_000);
    let mut before = 0;
    for count in [10_000, 50_000] {
        let at_rest: Vec<Arc<PodView>> = (pods.len()..count)
            .map(|index| pod(index, "web:2", &new))
            .collect();
        pods.extend(at_rest);
        let resident = resident_bytes();
        if count == 10_000 {
            before = resident;
        } else {
            println!(
                "{} bytes per pod",
                resident.saturating_sub(before) / (count - 10_000)
            );
        }
    }
    for count in [10_000, 50_000] {
        let rest = &pods[..count];
        let half: Vec<Arc<PodView>> = (0..count)
            .map(|index| {
                let (image, name) = if index % 2 == 0 {
                    ("web:1", &old)
                } else {
                    ("web:2", &new)
                };
                pod(index, image, name)
            })
            .collect();
        measure(
            "at rest",
            &set(count, "web:2", "InPlaceIfPossible", &new),
            rest,
            &revisions,
        );
        measure(
            "half-way, in place",
            &set(count, "web:2", "InPlaceIfPossible", &old),
            &half,
            &revisions,
        );
        measure(
            "half-way, recreating",
            &set(count, "web:2", "ReCreate", &old),
            &half,
            &revisions,
        );
        measure(
            "scaling in by half",
            &set(count / 2, "web:2", "InPlaceIfPossible", &new),
            rest,
            &revisions,
        );
        measure(
            "scaling out by half",
            &set(count * 3 / 2, "web:2", "InPlaceIfPossible", &new),
            rest,
            &revisions,
        );
    }
}
