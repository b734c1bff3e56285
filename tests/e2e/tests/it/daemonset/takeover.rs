//! DaemonSets that OpenKruise ran. Their pods name the version of the set that was stored then as their owner.

use std::collections::BTreeMap;

use kruise_e2e::audit::MANAGER;
use kruise_e2e::wait;
use serde_json::{Value, json};

use super::SETS;
use crate::cluster::{LIMIT, Scenario, audit_log, crash_manager, scenario_alone, text};
use crate::stored::Stored;
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

fn is_taken_over(version: &str, owner: &str) {
    let namespace = format!("takeover-ads-{}", version.replace('.', "-"));
    let scenario = scenario_alone(&namespace);
    stand_by(&scenario);
    let stored = Stored::restore_daemonset(&scenario.kubectl, version, "rest");
    let before = pods(&scenario);
    assert_eq!(before.len(), 4);
    assert_eq!(owners(&scenario), vec![owner; 4]);
    let mut log = audit_log();
    take_over(&scenario);
    // Nodes of this cluster that had no pod get one.
    let requests = log.read_new(MANAGER).unwrap();
    let written: Vec<_> = requests
        .iter()
        .filter(|request| request.namespace == namespace && request.is_write())
        .filter(|request| {
            let is_stored = before.values().any(|(name, _)| *name == request.name);
            is_stored || (request.resource == "controllerrevisions" && request.name.starts_with("ads-"))
        })
        .collect();
    assert!(written.is_empty(), "{written:?}");
    assert_eq!(pods(&scenario), before);
    crash_manager(scenario.kubectl.kubeconfig());
    stored.start_nodes();

    // A lost pod comes back at once: those of the older version raise events, too.
    let (node, (lost, _)) = before.first_key_value().unwrap();
    scenario
        .kubectl
        .run(&["delete", "pod", lost, "--wait=false", "--grace-period=1"])
        .unwrap();
    wait::until_true("another pod is on its node", LIMIT, || {
        Ok(pods(&scenario).get(node).is_some_and(|(name, _)| name != lost))
    })
    .unwrap();
    let before = pods(&scenario);
    let set = scenario.kubectl.get(SETS, "ads").unwrap();
    let mut containers = set["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["image"] = json!("nginx:9");
    let change = json!({"spec": {
        "updateStrategy": {"rollingUpdate": {"partition": 0, "maxUnavailable": "100%"}},
        "template": {"spec": {"containers": containers}},
    }});
    scenario.kubectl.patch(SETS, "ads", &change).unwrap();
    until_updated(&scenario);
    assert_eq!(pods(&scenario), before, "in place");
    let is_new = |pod: &Value| text(pod, "/spec/containers/0/image") == "nginx:9";
    assert!(on_own_nodes(&scenario).iter().all(is_new));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_daemonset_of_1_8_4_whose_pods_name_the_older_version_is_taken_over_without_a_pod_written() {
    is_taken_over("1.8.4", "apps.kruise.io/v1alpha1");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_daemonset_of_main_is_taken_over_without_a_pod_written() {
    is_taken_over("main", "apps.kruise.io/v1beta1");
}
