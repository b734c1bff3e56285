//! What a look at a SidecarSet costs where there are many pods: `cargo bench -p kruise-plan-sidecars`.
//!
//! Pods have three containers and three sidecars of three sets, each upgraded before. Two sets are for all of 10,000
//! pods, fifty for 200 each. Holds that a plan costs what the pods of its set cost: a set of 200 among many costs
//! no more than [`MOST`] times its share of what a set of all does, and that no plan takes longer than [`LONGEST`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::{fs, hint::black_box, process::ExitCode, sync::Arc};

use jiff::Timestamp;
use kruise_api::sidecarset::SidecarSet;
use kruise_plan_kit::{
    Memory, Plan,
    ledger::Budgets,
    sidecars::{hashes, names, sidecar_list},
};
use kruise_plan_sidecars::{Explain, Repairs, Snapshot, WriteLocks, plan};
use kruise_views::{PodView, RevisionView};
use serde_json::{Map, Value, json};

const PODS: usize = 10_000;
/// Sets of a part of the pods.
const PARTS: usize = 50;
const RUNS: usize = 20;
/// Plans in one run: the clock of CPU time may tick in milliseconds.
const PLANS: u64 = 5;
const NOW: &str = "2026-01-01T01:00:00Z";
const BEFORE: &str = "2026-01-01T00:00:00Z";
/// Milliseconds.
const LONGEST: f64 = 500.0;
const MOST: f64 = 2.0;

/// A set of one container, which lets a tenth of its pods be out of service.
fn set(name: &str, image: &str) -> Value {
    let env: Vec<Value> = (0..10)
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": format!("value number {n}")}))
        .collect();
    let spec = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "containers": [{"name": format!("{name}-agent"), "image": image, "env": env,
            "podInjectPolicy": "BeforeAppContainer", "upgradeStrategy": {"upgradeType": "ColdUpgrade"},
            "shareVolumePolicy": {"type": "disabled"}}],
        "updateStrategy": {"type": "RollingUpdate", "partition": 0, "maxUnavailable": "10%"},
        "revisionHistoryLimit": 10,
    });
    let found = hashes(&spec);
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "1", "generation": 1,
            "annotations": {names::HASH: found.full, names::HASH_WITHOUT_IMAGE: found.without_image}},
        "spec": spec})
}

/// Names of the sets of a pod.
fn sets_of(index: usize) -> [String; 3] {
    [
        "all-one".to_owned(),
        "all-two".to_owned(),
        format!("part-{:02}", index % PARTS),
    ]
}

/// A running pod with the sidecars of its sets, all of the first image and upgraded to it.
fn pod(index: usize) -> Arc<PodView> {
    let (mut records, mut without, mut states) = (Map::new(), Map::new(), Map::new());
    let (mut containers, mut statuses) = (Vec::new(), Vec::new());
    for name in sets_of(index) {
        let set = set(&name, "agent:1");
        let (found, list) = (hashes(&set["spec"]), sidecar_list(&set["spec"]));
        let record = |hash: &str| {
            json!({"updateTimestamp": BEFORE, "hash": hash, "sidecarSetName": name, "sidecarList": list,
                   "controllerRevision": format!("{name}-7c9d8f5b6")})
        };
        records.insert(name.clone(), record(&found.full));
        without.insert(name.clone(), record(&found.without_image));
        let agent = format!("{name}-agent");
        let ran = json!({"imageID": "fake://agent:0", "containerID": "containerd://0"});
        states.insert(
            name.clone(),
            json!({"revision": found.full, "updateTimestamp": BEFORE, "lastContainerStatuses": {&agent: ran}}),
        );
        containers.push(json!({"name": agent, "image": "agent:1"}));
    }
    for name in ["main", "log", "proxy"] {
        containers.push(json!({"name": name, "image": "registry.example.com/shop/web:1.2.3"}));
    }
    for (number, container) in containers.iter().enumerate() {
        statuses.push(
            json!({"name": container["name"], "image": container["image"], "imageID": format!("sha256:{index:064}"),
            "ready": true, "containerID": format!("containerd://{number}{index:063}"), "restartCount": 0,
            "state": {"running": {}}}),
        );
    }
    let conditions: Vec<Value> = ["Initialized", "PodScheduled", "Ready", "ContainersReady"]
        .iter()
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": BEFORE}))
        .chain([json!({"type": "SidecarSetUpgradable", "status": "True", "lastTransitionTime": BEFORE,
            "message": json!(sets_of(index).map(|name| (name, true)).into_iter().collect::<std::collections::BTreeMap<_, _>>()).to_string()})])
        .collect();
    let annotations = json!({
        names::HASH: Value::from(records).to_string(), names::HASH_WITHOUT_IMAGE: Value::from(without).to_string(),
        names::INPLACE_STATE: Value::from(states).to_string(), names::INJECTED_LIST: sets_of(index).join(","),
    });
    let pod = json!({
        "metadata": {"name": format!("web-{index:05}"), "namespace": "shop", "uid": format!("uid-of-web-{index:05}"),
            "resourceVersion": (1000 + index).to_string(), "creationTimestamp": BEFORE,
            "labels": {"app": "web", "pod-template-hash": "5d8f7c9b4"}, "annotations": annotations},
        "spec": {"nodeName": format!("node-{}", index % 500), "containers": containers},
        "status": {"phase": "Running", "conditions": conditions, "containerStatuses": statuses},
    });
    Arc::new(serde_json::from_str(&pod.to_string()).unwrap())
}

/// The stored revision of a set as it is.
fn revision(set: &Value, pods: &[Arc<PodView>], now: Timestamp) -> Arc<RevisionView> {
    let made = once(&SidecarSet::from_json(set).unwrap(), &pods[..1], &[], now);
    let object = made
        .writes
        .iter()
        .flat_map(|object| &object.steps)
        .find_map(|step| match &step.write {
            kruise_plan_kit::Write::Create { body, .. } => Some(body.render()),
            _ => None,
        })
        .unwrap();
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn once(set: &SidecarSet, pods: &[Arc<PodView>], revisions: &[Arc<RevisionView>], now: Timestamp) -> Plan {
    let snapshot = Snapshot {
        set,
        api_version: "apps.kruise.io/v1beta1",
        namespace: "kruise-system",
        pods,
        not_injected: &[],
        has_canary: &|_| false,
        repairs: &Repairs::default(),
        revisions,
        in_namespace: &|_| true,
        is_set: &|_| true,
        budgets: Budgets::NONE,
        memory: &Memory::default(),
        explain: Explain::No,
    };
    plan(&snapshot, now)
}

/// Nanoseconds that this thread has run: neighbours on the machine do not show.
fn on_cpu() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Plans a set for these pods and says what it takes, in milliseconds.
fn measure(what: &str, set: &Value, pods: &[Arc<PodView>]) -> f64 {
    let now: Timestamp = NOW.parse().unwrap();
    let revisions = [revision(set, pods, now)];
    let set = SidecarSet::from_json(set).unwrap();
    // WriteLocks that other sets have taken on all pods.
    let mut locks = WriteLocks::default();
    let mut times: Vec<u64> = (0..RUNS)
        .map(|_| {
            let start = on_cpu();
            for _ in 0..PLANS {
                let mut plan = once(&set, pods, &revisions, now);
                locks.lock(&set.metadata.name, &mut plan, &Memory::default());
                black_box(plan);
            }
            (on_cpu() - start) / PLANS
        })
        .collect();
    times.sort_unstable();
    let writes = once(&set, pods, &revisions, now).writes.len();
    let (median, worst) = (times[RUNS / 2] as f64 / 1e6, times[RUNS - 1] as f64 / 1e6);
    println!(
        "{:>6} pods  {what:<26} {median:8.2} ms  (worst {worst:.2})  {writes} writes",
        pods.len()
    );
    median
}

fn main() -> ExitCode {
    let pods: Vec<Arc<PodView>> = (0..PODS).map(pod).collect();
    let part: Vec<Arc<PodView>> = pods.iter().step_by(PARTS).cloned().collect();
    let mut within = true;
    for image in ["agent:1", "agent:2"] {
        let does = if image == "agent:1" {
            "at rest"
        } else {
            "changes a tenth"
        };
        let all = measure(&format!("all: {does}"), &set("all-one", image), &pods);
        let some = measure(&format!("a part: {does}"), &set("part-00", image), &part);
        within &= all <= LONGEST && some * PARTS as f64 <= all * MOST;
    }
    if within {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
