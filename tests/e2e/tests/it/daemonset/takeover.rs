//! DaemonSets that OpenKruise ran. Their pods name the version of the set that was stored then as their owner.

use std::collections::BTreeMap;

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::wait;
use serde_json::{Value, json};

use super::SETS;
use crate::cluster::{LIMIT, Scenario, audit_log, crash_manager, scenario_alone, text};
use crate::stored::{Stored, restored, side_by_side};
use crate::takeover::{stand_by, take_over};

/// The names of the pods that stood in the fixture, by node, each with its uid.
type Pods = BTreeMap<String, (String, String)>;

/// The pods of the set on the nodes of the fixture: nodes of scenarios before may become unreachable at any time.
fn on_own_nodes(scenario: &Scenario) -> Vec<Value> {
    let namespace = scenario.kubectl.namespace().unwrap();
    let mut pods = scenario.pods_of("ads");
    pods.retain(|pod| text(pod, "/spec/nodeName").starts_with(namespace));
    pods
}

fn pods(scenario: &Scenario) -> Pods {
    let pods = on_own_nodes(scenario).into_iter();
    pods.map(|pod| {
        let name = text(&pod, "/metadata/name");
        (text(&pod, "/spec/nodeName"), (name, text(&pod, "/metadata/uid")))
    })
    .collect()
}

fn owners(scenario: &Scenario) -> Vec<String> {
    let pods = scenario.pods_of("ads").into_iter();
    pods.map(|pod| text(&pod, "/metadata/ownerReferences/0/apiVersion"))
        .collect()
}

/// Waits until all nodes have an available pod of the newest revision.
fn until_updated(scenario: &Scenario) {
    wait::until_true("all pods are updated and available", LIMIT, || {
        let set = scenario.kubectl.get(SETS, "ads")?;
        let status = &set["status"];
        let desired = &status["desiredNumberScheduled"];
        Ok(status["observedGeneration"] == set["metadata"]["generation"]
            && status["updatedNumberScheduled"] == *desired
            && status["numberAvailable"] == *desired)
    })
    .unwrap();
}

/// Versions, and which version of the set their pods name as their owner.
const OWNERS: [(&str, &str); 2] = [
    ("1.8.4", "apps.kruise.io/v1alpha1"),
    ("main", "apps.kruise.io/v1beta1"),
];

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn daemonsets_of_two_versions_are_taken_over_without_a_pod_written_and_roll_out() {
    let scenario = scenario_alone("takeover-ads");
    stand_by(&scenario);
    let left = OWNERS.map(|(version, _)| (version, "rest"));
    let left = restored(&scenario, &left, |beside, (version, phase)| {
        Stored::restore_daemonset(&beside.kubectl, version, phase)
    });
    let before: Vec<Pods> = left.iter().map(|(beside, _)| pods(beside)).collect();
    for ((beside, _), (_, owner)) in left.iter().zip(OWNERS) {
        assert_eq!(owners(beside), [owner; 4]);
    }
    let mut log = audit_log();
    take_over(&scenario);
    let requests = log.read_new(MANAGER).unwrap();
    for ((beside, _), before) in left.iter().zip(&before) {
        assert_eq!(writes(&requests, beside, before), [""; 0]);
        assert_eq!(pods(beside), *before);
    }
    crash_manager(scenario.kubectl.kubeconfig());
    // A set wants a pod on each node, of whomever it is.
    for (_, stored) in &left {
        stored.start_nodes();
    }
    side_by_side(&left, |(beside, _)| {
        a_lost_pod_comes_back(beside);
        rolls_out(beside);
    });
}

/// Writes of what was restored. Nodes of this cluster that had no pod get one.
fn writes(requests: &[Entry], scenario: &Scenario, before: &Pods) -> Vec<String> {
    let namespace = scenario.kubectl.namespace().unwrap();
    let written = requests
        .iter()
        .filter(|request| request.namespace == namespace && request.is_write())
        .filter(|request| {
            let is_stored = before.values().any(|(name, _)| *name == request.name);
            is_stored || (request.resource == "controllerrevisions" && request.name.starts_with("ads-"))
        });
    written
        .map(|request| format!("{} {} {}", request.verb, request.resource, request.name))
        .collect()
}

/// At once: those of the older version raise events, too.
fn a_lost_pod_comes_back(scenario: &Scenario) {
    let before = pods(scenario);
    let (node, (lost, _)) = before.first_key_value().unwrap();
    scenario
        .kubectl
        .run(&["delete", "pod", lost, "--wait=false", "--grace-period=1"])
        .unwrap();
    wait::until_true("another pod is on its node", LIMIT, || {
        Ok(pods(scenario).get(node).is_some_and(|(name, _)| name != lost))
    })
    .unwrap();
}

fn rolls_out(scenario: &Scenario) {
    let before = pods(scenario);
    let set = scenario.kubectl.get(SETS, "ads").unwrap();
    let mut containers = set["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["image"] = json!("nginx:9");
    let change = json!({"spec": {
        "updateStrategy": {"rollingUpdate": {"partition": 0, "maxUnavailable": "100%"}},
        "template": {"spec": {"containers": containers}},
    }});
    scenario.kubectl.patch(SETS, "ads", &change).unwrap();
    until_updated(scenario);
    assert_eq!(pods(scenario), before, "in place");
    let is_new = |pod: &Value| text(pod, "/spec/containers/0/image") == "nginx:9";
    assert!(on_own_nodes(scenario).iter().all(is_new));
}
