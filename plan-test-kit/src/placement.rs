//! Pods that are for a node, and what nodes there are for them.

use std::{collections::BTreeMap, sync::Arc};

use kruise_plan_kit::fit::{Placed, Placement};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Cluster;

/// Path of the name of the node that a pod is pinned to.
const PINNED: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";

/// A view of an object.
pub fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

/// The required affinity that pins a pod to a node.
pub fn pinned(node: &str) -> Value {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [field]}]}}})
}

/// The node that a pod is for.
pub fn node_of(pod: &Value) -> Option<&str> {
    let bound = pod["spec"]["nodeName"].as_str();
    bound.or_else(|| pod.pointer(PINNED)?.as_str())
}

/// Nodes by name, and whether pods of a placement may run there.
pub fn placed(nodes: &BTreeMap<String, Value>, placement: &Placement) -> Vec<Placed> {
    let nodes = nodes.values().map(decode);
    let placed = nodes.map(|node| Placed {
        fit: placement.fit(&node),
        node,
    });
    placed.collect()
}

impl Cluster {
    /// The nodes of these pods do their work, those that exist; the scheduler binds pods to them.
    pub fn work_on(&mut self, nodes: &BTreeMap<String, Value>, names: &[String]) {
        for name in names {
            self.terminate(name);
            let node = self.pods.get(name).and_then(node_of).map(str::to_owned);
            if let Some(node) = node.filter(|node| nodes.contains_key(node)) {
                self.bind(name, &node);
                self.kubelet(name);
            }
        }
    }
}
