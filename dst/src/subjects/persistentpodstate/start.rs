//! A PersistentPodState as users create it, and the StatefulSet below it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::engine::resource::Resource;
use crate::subjects::nodes::POOL;

/// Name of the subject.
pub const NAME: &str = "persistentpodstate";
/// The component of its controller.
pub const CONTROLLER: &str = "persistentpodstate-controller";
/// PersistentPodStates.
pub const STATES: Resource = Resource::kruise("persistentpodstates", "PersistentPodState");
/// StatefulSets of Kubernetes.
pub const APPS_STATEFULSETS: Resource = Resource {
    group: "apps",
    version: "v1",
    plural: "statefulsets",
    kind: "StatefulSet",
};
/// Name of both objects.
pub const BROKER: &str = "broker";

/// The StatefulSet and its nodes at first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// Nodes.
    pub nodes: u8,
    /// Pods.
    pub replicas: u8,
    /// Does it make its pods side by side?
    pub parallel: bool,
    /// Are records of pods that are scaled in kept?
    pub keeps: bool,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            nodes: 4,
            replicas: 3,
            parallel: true,
            keeps: false,
        }
    }
}

impl Start {
    /// The StatefulSet.
    pub fn stateful_set(&self) -> Value {
        let order = if self.parallel { "Parallel" } else { "OrderedReady" };
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": BROKER, "namespace": "default"},
            "spec": {"replicas": self.replicas, "serviceName": BROKER, "podManagementPolicy": order,
                "selector": {"matchLabels": {"app": BROKER}},
                "template": {"metadata": {"labels": {"app": BROKER}}, "spec": {
                    "terminationGracePeriodSeconds": 3, "containers": [{"name": "main", "image": "broker:1"}]}}}})
    }

    /// The PersistentPodState.
    pub fn state(&self) -> Value {
        json!({"apiVersion": STATES.api_version(), "kind": STATES.kind,
            "metadata": {"name": BROKER, "namespace": "default"},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": BROKER},
                "preferredPersistentTopology": [{"weight": 1, "preference": {"keys": [POOL]}}],
                "persistentPodStateRetentionPolicy": policy(self.keeps)}})
    }
}

/// A retention policy.
pub fn policy(keeps: bool) -> &'static str {
    if keeps { "WhenDeleted" } else { "WhenScaled" }
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// The StatefulSet has so many pods.
    Scale(u8),
    /// The pod of this number is deleted.
    Delete(u8),
    /// Records of pods that are scaled in are kept, or not any more.
    Keep(bool),
}
