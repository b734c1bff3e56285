//! Probes on real nodes: what a container answers decides whether a Service has the pod.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::agent::Agents;
use super::{OnNodes, WEB, on_nodes_alone, server_and_neighbour, status_of, web_of};
use crate::cluster::{LIMIT, text};

const SERVES: &str = "shop.example/serves";
const HAS_SHELL: &str = "shop.example/has-shell";

/// A marker with a connection to a port of `main` and a command in `neighbour`.
fn marker(port: u16) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": "serves"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": [
            {"name": "port", "containerName": "main", "podConditionType": SERVES,
             "probe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
             "markerPolicy": [
                {"state": "Succeeded", "labels": {"serves": "yes"}},
                {"state": "Failed", "labels": {"serves": "no"}}]},
            {"name": "shell", "containerName": "neighbour", "podConditionType": HAS_SHELL,
             "probe": {"exec": {"command": ["sh", "-c", "echo it has; exit 0"]}, "periodSeconds": 1}},
        ]},
    })
}

fn condition(pod: &Value, kind: &str) -> Option<(String, String)> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|one| one["type"] == kind)?;
    Some((text(found, "/status"), text(found, "/message")))
}

/// Waits until the pod has this condition and label, and the Service has it or not.
fn until_serves(on: &OnNodes, status: &str, label: &str) {
    let ip = text(&on.pod(), "/status/podIP");
    let kubectl = &on.scenario.kubectl;
    wait::until_true(&format!("the pod is marked as {label}"), LIMIT, || {
        let pod = on.pod();
        let serves = condition(&pod, SERVES).is_some_and(|(found, _)| found == status);
        let slices = kubectl.list("endpointslices", "kubernetes.io/service-name=web")?;
        let endpoints = slices
            .iter()
            .flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
        let has_it = endpoints
            .into_iter()
            .any(|one| one["addresses"][0] == ip.as_str());
        Ok(serves && pod["metadata"]["labels"]["serves"] == label && has_it == (label == "yes"))
    })
    .unwrap();
}

/// What the agent of the pod's node has reported.
fn reported(on: &OnNodes, node: &str) -> Vec<Value> {
    let stored = on.scenario.kubectl.get("nodepodprobes", node).unwrap_or_default();
    stored["status"]["podProbeStatuses"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn the_result_of_a_probe_switches_the_endpoints_of_a_service() {
    let on = on_nodes_alone("nodes-probes");
    let _agents = Agents::start(&on);
    let kubectl = &on.scenario.kubectl;
    kubectl.apply(&web_of(1, &server_and_neighbour(WEB))).unwrap();
    on.until_updated(1);
    let node = text(&on.pod(), "/spec/nodeName");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web", "serves": "yes"}, "ports": [{"port": 80}]}});
    kubectl.create(&service).unwrap();

    // Nobody listens at this port.
    kubectl.apply(&marker(81)).unwrap();
    until_serves(&on, "False", "no");
    wait::until_true("the command has run", LIMIT, || {
        let found = condition(&on.pod(), HAS_SHELL);
        Ok(found.is_some_and(|(status, message)| status == "True" && message.trim() == "it has"))
    })
    .unwrap();
    kubectl.apply(&marker(80)).unwrap();
    until_serves(&on, "True", "yes");
    kubectl.apply(&marker(81)).unwrap();
    until_serves(&on, "False", "no");
    let pod = on.pod();
    for container in ["main", "neighbour"] {
        assert_eq!(status_of(&pod, container)["restartCount"], 0);
    }
    let events = kubectl.list("events", "").unwrap();
    let reasons = ["KruiseProbeSucceeded", "KruiseProbeFailed"];
    for reason in reasons {
        assert!(events.iter().any(|event| event["reason"] == reason), "{reason}");
    }

    assert!(!reported(&on, &node).is_empty());
    kubectl.run(&["delete", "podprobemarker", "serves"]).unwrap();
    wait::until_true("the results leave with their marker", LIMIT, || {
        Ok(reported(&on, &node).is_empty())
    })
    .unwrap();
}
