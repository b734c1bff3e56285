//! Hooks, and what they mean for processes.

use std::time::Duration;

use kruise_e2e::{process, wait};
use serde_json::{Value, json};

use super::runtime::version;
use super::{OnNodes, WEB, containers, identity, on_nodes, server_and_neighbour, web_of};
use crate::cluster::{LIMIT, text};

/// What holds pods here.
const HOLD: &str = "lab.test/drain";

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_pod_serves_until_its_predelete_hook_is_removed_and_then_its_processes_end() {
    let on = on_nodes("nodes-pre-delete");
    let mut set = web_of(1, &server_and_neighbour(WEB));
    set["spec"]["lifecycle"] = json!({"preDelete": {"finalizersHandler": [HOLD]}});
    set["spec"]["template"]["metadata"]["finalizers"] = json!([HOLD]);
    let kubectl = &on.scenario.kubectl;
    kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let (before, running) = (on.pod(), on.runtime.processes(&on.pod()));
    let name = text(&before, "/metadata/name");

    kubectl
        .run(&["scale", "clonesets", "web", "--replicas=0"])
        .unwrap();
    wait::until_true("the pod is held", LIMIT, || {
        let state = text(
            &kubectl.get("pods", &name)?,
            "/metadata/labels/lifecycle.apps.kruise.io~1state",
        );
        Ok(state == "PreparingDelete")
    })
    .unwrap();
    // Longer than its processes would have after a deletion.
    wait::observe_for(Duration::from_secs(8));
    assert_eq!(on.runtime.processes(&on.pod()), running);
    assert_eq!(version(&before).as_deref(), Some("1"));

    kubectl
        .patch("pods", &name, &json!({"metadata": {"finalizers": null}}))
        .unwrap();
    wait::until_true("the pod is gone", LIMIT, || {
        Ok(kubectl.list("pods", "app=web")?.is_empty())
    })
    .unwrap();
    let sandbox = running.sandboxes.iter();
    let pids: Vec<u32> = running
        .containers
        .values()
        .chain(sandbox)
        .map(|one| one.pid)
        .collect();
    assert_eq!(pids.len(), 3);
    wait::until_true("its processes end", LIMIT, || {
        Ok(!pids.iter().any(|pid| process::is_running(*pid)))
    })
    .unwrap();
    assert_eq!(version(&before), None);
}

/// The addresses behind the service `web`, sorted.
fn endpoints(on: &OnNodes) -> anyhow::Result<Vec<String>> {
    let slices = on
        .scenario
        .kubectl
        .list("endpointslices", "kubernetes.io/service-name=web")?;
    let all = slices.iter().filter_map(|slice| slice["endpoints"].as_array());
    let ready = all
        .flatten()
        .filter(|endpoint| endpoint["conditions"]["ready"] == true);
    let mut addresses: Vec<String> = ready.map(|endpoint| text(endpoint, "/addresses/0")).collect();
    addresses.sort();
    Ok(addresses)
}

fn until_endpoints(on: &OnNodes, what: &str, mut wanted: Vec<String>) {
    wanted.sort();
    wait::until_true(what, LIMIT, || Ok(endpoints(on)? == wanted)).unwrap();
}

fn state(pod: &Value) -> String {
    text(pod, "/metadata/labels/lifecycle.apps.kruise.io~1state")
}

fn address(pod: &Value) -> String {
    text(pod, "/status/podIP")
}

/// Waits until a pod is in this state, and returns it.
fn until_one_is(on: &OnNodes, wanted: &str) -> Value {
    wait::until(&format!("a pod is {wanted}"), LIMIT, || {
        Ok(on.scenario.pods().into_iter().find(|pod| state(pod) == wanted))
    })
    .unwrap()
}

/// Puts the label of the hook on a pod, or takes it off.
fn label(on: &OnNodes, pod: &Value, value: &Value) {
    let patch = json!({"metadata": {"labels": {HOLD: value}}});
    let name = text(pod, "/metadata/name");
    on.scenario.kubectl.patch("pods", &name, &patch).unwrap();
}

/// Two pods behind a service. One of them may be updated; hooks mark whom they hold.
fn behind_a_service(on: &OnNodes) {
    let mut set = web_of(2, &server_and_neighbour(WEB));
    let hook = json!({"labelsHandler": {HOLD: "yes"}, "markPodNotReady": true});
    set["spec"]["lifecycle"] = json!({"inPlaceUpdate": hook, "preDelete": hook});
    set["spec"]["template"]["metadata"]["labels"][HOLD] = json!("yes");
    set["spec"]["updateStrategy"]["partition"] = json!(1);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    on.scenario.kubectl.apply(&service).unwrap();
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(2);
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_marked_pod_leaves_its_service_and_keeps_answering_until_its_hook_is_removed() {
    let on = on_nodes("nodes-marked");
    behind_a_service(&on);
    let both: Vec<String> = on.scenario.pods().iter().map(address).collect();
    until_endpoints(&on, "both are behind the service", both.clone());

    on.scenario
        .patch(&containers(&server_and_neighbour("lab.test/web:2")));
    let held = until_one_is(&on, "PreparingUpdate");
    let stays = both.iter().find(|one| **one != address(&held)).unwrap().clone();
    until_endpoints(&on, "the held one is not behind it", vec![stays.clone()]);
    assert_eq!(version(&held).as_deref(), Some("1"), "nothing has changed in it");
    label(&on, &held, &Value::Null);
    let updated = until_one_is(&on, "Updated");
    until_endpoints(&on, "both are behind it again", both);
    assert_eq!(identity(&updated), identity(&held));
    assert_eq!(version(&updated).as_deref(), Some("2"));
    label(&on, &updated, &json!("yes"));
    on.scenario
        .until_status(&json!({"replicas": 2, "availableReplicas": 2, "updatedAvailableReplicas": 1}));

    let pods = on.scenario.pods();
    let leaving = pods.iter().find(|pod| address(pod) == stays).unwrap();
    let asked = json!({"metadata": {"labels": {"apps.kruise.io/specified-delete": "true"}}});
    let kubectl = &on.scenario.kubectl;
    kubectl
        .patch("pods", &text(leaving, "/metadata/name"), &asked)
        .unwrap();
    let held = until_one_is(&on, "PreparingDelete");
    assert_eq!(identity(&held), identity(leaving));
    until_endpoints(&on, "the leaving one is not behind it", vec![address(&updated)]);
    assert_eq!(
        version(&held).as_deref(),
        Some("1"),
        "it serves who is still there"
    );
    label(&on, &held, &Value::Null);
    wait::until("another pod is in its place", LIMIT, || {
        let now: Vec<String> = on.scenario.pods().iter().map(address).collect();
        let gone = !on.scenario.uids().contains(&text(&held, "/metadata/uid"));
        let mut wanted = now.clone();
        wanted.sort();
        Ok((gone && now.len() == 2 && endpoints(&on)? == wanted).then_some(()))
    })
    .unwrap();
}
