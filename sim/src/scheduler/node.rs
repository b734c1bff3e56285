//! A node as the scheduler sees it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ports::{Port, Taken};
use super::spread::Constraints;
use super::{affinity, taints};
use super::{request::Amounts, resized};
use crate::object::{at, get_metadata, metadata_text};

pub(super) type Labels = BTreeMap<String, String>;

/// A pod that has a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) uid: String,
    pub(super) node: String,
    pub(super) labels: Labels,
    /// It is going: spread constraints do not count it.
    pub(super) leaving: bool,
    pub(super) generation: i64,
    /// It requests something else than it has: what it counts with changes with its status.
    pub(super) unsettled: bool,
    request: Amounts,
    ports: Vec<Port>,
}

/// What a pod wants of a node.
pub(super) struct Wanted {
    request: Amounts,
    ports: Vec<Port>,
}

impl Wanted {
    pub(super) fn of(pod: &Value) -> Self {
        Self {
            request: Amounts::of_pod(pod),
            ports: Port::of_pod(pod),
        }
    }
}

impl Placed {
    pub(super) fn of(pod: &Value, node: &str) -> Self {
        Self {
            uid: metadata_text(pod, "uid").to_owned(),
            node: node.to_owned(),
            labels: labels(pod),
            leaving: !get_metadata(pod, "deletionTimestamp").is_null(),
            generation: get_metadata(pod, "generation").as_i64().unwrap_or(0),
            unsettled: resized::is_unsettled(pod),
            request: resized::request(pod),
            ports: Port::of_pod(pod),
        }
    }
}

/// An object's labels.
pub(super) fn labels(object: &Value) -> Labels {
    let members = get_metadata(object, "labels").as_object().into_iter().flatten();
    members
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// A node, and what is on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Pods may name a node that is not there.
    pub(super) exists: bool,
    pub(super) labels: Labels,
    taints: Vec<Value>,
    cordoned: bool,
    allocatable: Amounts,
    used: Amounts,
    ports: Taken,
    pub(super) pods: usize,
}

impl Node {
    /// Takes the node's object.
    pub(super) fn read(&mut self, node: &Value) {
        self.exists = true;
        self.labels = labels(node);
        let taints = at(node, "/spec/taints").and_then(Value::as_array);
        self.taints = taints.cloned().unwrap_or_default();
        self.cordoned = at(node, "/spec/unschedulable") == Some(&Value::Bool(true));
        self.allocatable = Amounts::of_list(at(node, "/status/allocatable"));
    }

    pub(super) fn add(&mut self, pod: &Placed) {
        self.pods += 1;
        self.used.add(&pod.request);
        self.ports.add(&pod.ports);
    }

    pub(super) fn remove(&mut self, pod: &Placed) {
        self.pods = self.pods.saturating_sub(1);
        self.used.subtract(&pod.request);
        self.ports.remove(&pod.ports);
    }

    /// Why a pod does not fit here, as the scheduler reports it; nothing if it does. The first test that fails decides.
    pub(super) fn refuses(
        &self,
        name: &str,
        pod: &Value,
        wanted: &Wanted,
        spread: &Constraints,
    ) -> Vec<String> {
        if self.cordoned && !taints::tolerates(pod, &taints::cordon()) {
            return vec!["node(s) were unschedulable".into()];
        }
        if let Some(taint) = taints::untolerated(pod, &self.taints) {
            return vec![format!("node(s) had untolerated taint {taint}")];
        }
        if !affinity::matches(pod, name, &self.labels) {
            return vec!["node(s) didn't match Pod's node affinity/selector".into()];
        }
        if !self.ports.leaves(&wanted.ports) {
            return vec!["node(s) didn't have free ports for the requested pod ports".into()];
        }
        let mut lacking: Vec<String> = wanted
            .request
            .lacking(&self.used, &self.allocatable)
            .map(|resource| format!("Insufficient {resource}"))
            .collect();
        if (self.pods as i128 + 1) * 1000 > self.allocatable.get("pods") {
            lacking.push("Too many pods".into());
        }
        if !lacking.is_empty() {
            return lacking;
        }
        spread.refuses(self).map(str::to_owned).into_iter().collect()
    }
}
