//! Nodes of one scenario, which pods of others do not tolerate.

use kruise_e2e::kubectl::Kubectl;
use serde_json::json;

use crate::cluster::Scenario;

/// Kinds that run pods on these nodes. They are deleted with them.
const KINDS: &str = "daemonsets.v1beta1.apps.kruise.io,broadcastjobs";
/// Label, and key of the taint, of the nodes of a scenario.
pub(crate) const GROUP: &str = "daemonset-test";

/// Nodes of one scenario. They are deleted with it.
pub(crate) struct Nodes {
    kubectl: Kubectl,
    pub(crate) group: String,
    pub(crate) names: Vec<String>,
}

impl Nodes {
    pub(crate) fn new(scenario: &Scenario, count: usize) -> Self {
        let kubectl = scenario.kubectl.clone();
        let group = kubectl.namespace().unwrap().to_owned();
        let mut nodes = Self {
            kubectl,
            group,
            names: Vec::new(),
        };
        for _ in 0..count {
            nodes.join();
        }
        nodes
    }

    /// A node joins, and is ready.
    pub(crate) fn join(&mut self) -> String {
        let name = format!("{}-{:02}", self.group, self.names.len());
        let room = json!({"cpu": "32", "memory": "256Gi", "pods": "110"});
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
                "labels": {GROUP: self.group, "kubernetes.io/hostname": name, "type": "kwok"},
            },
            "spec": {"taints": [{"key": GROUP, "value": self.group, "effect": "NoSchedule"}]},
            "status": {"allocatable": room, "capacity": room},
        });
        self.kubectl.apply(&node).unwrap();
        self.names.push(name.clone());
        name
    }

    pub(crate) fn run(&self, args: &[&str]) {
        self.kubectl.run(args).unwrap();
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let selector = format!("{GROUP}={}", self.group);
        let _ = self.kubectl.run(&["delete", KINDS, "--all", "--wait=false"]);
        let _ = self.kubectl.run(&["delete", "nodes", "-l", &selector]);
    }
}
