//! DaemonSets: a pod on each node, while nodes come, change and go, and updates in place, with surge and in parts.
//!
//! Each scenario has nodes of its own, which pods of others do not tolerate.

mod budgets;
mod placement;
pub(crate) mod requests;
mod takeover;
mod updates;
mod versions;

use std::collections::BTreeMap;

use kruise_e2e::wait::{self, Patience};
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, text};
use crate::own_nodes::{GROUP, Nodes};

/// As kubectl has to name them: `daemonsets` alone are those of the group `apps`.
const SETS: &str = "daemonsets.v1beta1.apps.kruise.io";
/// A DaemonSet `agent` for these nodes, that is updated so.
fn agent(nodes: &Nodes, rolling: &Value) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "nodeSelector": {GROUP: nodes.group},
                    "tolerations": [{"key": GROUP, "operator": "Exists"}],
                    "containers": [{"name": "main", "image": "nginx:1"}],
                },
            },
        },
    })
}

/// A patch of the image.
fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

fn patch(scenario: &Scenario, patch: &Value) {
    scenario.kubectl.patch(SETS, "agent", patch).unwrap();
}

/// Waits until the status is up to date and its `fields` have these values.
fn until_status(scenario: &Scenario, fields: &Value) {
    until_status_within(LIMIT, scenario, fields);
}

fn until_status_within(limit: Patience, scenario: &Scenario, fields: &Value) {
    wait::until_true(&format!("status of agent has {fields}"), limit, || {
        let set = scenario.kubectl.get(SETS, "agent")?;
        let current = set["status"]["observedGeneration"] == set["metadata"]["generation"];
        let mut wanted = fields.as_object().unwrap().iter();
        Ok(current && wanted.all(|(key, value)| set["status"][key] == *value))
    })
    .unwrap();
}

/// The pods that are not being deleted, by the names of their nodes.
fn by_node(scenario: &Scenario) -> BTreeMap<String, Value> {
    let pods = scenario.pods_of("agent");
    pods.into_iter()
        .map(|pod| (text(&pod, "/spec/nodeName"), pod))
        .collect()
}

/// The uid of the pod on each node.
fn uids(scenario: &Scenario) -> BTreeMap<String, String> {
    let pods = by_node(scenario).into_iter();
    pods.map(|(node, pod)| (node, text(&pod, "/metadata/uid")))
        .collect()
}

/// The nodes whose pods have this image.
fn nodes_with(scenario: &Scenario, image: &str) -> Vec<String> {
    let pods = by_node(scenario).into_iter();
    pods.filter(|(_, pod)| text(pod, "/spec/containers/0/image") == image)
        .map(|(node, _)| node)
        .collect()
}

/// Waits until the pods on exactly these nodes are there, and none is being deleted.
fn until_on(scenario: &Scenario, nodes: &[String]) {
    wait::until_true(&format!("pods are on {nodes:?}"), LIMIT, || {
        let pods = scenario.kubectl.list("pods", "app=agent")?;
        let mut on: Vec<String> = pods.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
        on.sort();
        Ok(on == nodes)
    })
    .unwrap();
}

/// Is the pod ready and not being deleted?
fn in_service(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    ready.any(|condition| condition["status"] == "True") && pod["metadata"]["deletionTimestamp"].is_null()
}
