//! Pods, and the requests that users create for them.

use crate::rules::prelude::*;
use crate::subjects::node_agents::AgentEdit;

pub const NAME: &str = "containerrecreaterequest";
pub const REQUESTS: Resource = Resource::kruise("containerrecreaterequests", "ContainerRecreateRequest");
/// Label of a request: the uid of its pod.
pub const POD_UID: &str = "crr.apps.kruise.io/pod-uid";
/// The containers of a pod.
pub const CONTAINERS: [&str; 2] = ["main", "log"];

/// The pods of a scenario, and their agents.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Pods.
    pub pods: u8,
    /// So many of them lack the readiness gate.
    pub ungated: u8,
    /// An agent dies at this share of the stops of containers, in percent: before or after the runtime has answered.
    pub dying: u8,
}

/// A request when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Recreate {
    /// All containers, or only the first.
    pub all: bool,
    /// `orderedRecreate`.
    pub ordered: bool,
    /// `forceRecreate`.
    pub force: bool,
    /// `terminationGracePeriodSeconds`.
    pub grace: Option<u8>,
    /// `minStartedSeconds`.
    pub started: u8,
    /// `unreadyGracePeriodSeconds`.
    pub unready: Option<u8>,
    /// `activeDeadlineSeconds`.
    pub deadline: Option<u8>,
    /// `ttlSecondsAfterFinished`.
    pub ttl: Option<u8>,
}

/// Name of the pod at a place.
pub fn pod_name(place: u8) -> String {
    format!("cart-{place}")
}

impl Start {
    /// The pod at a place. Every second one has a preStop hook.
    pub fn pod(&self, place: u8) -> Value {
        let container = |name: &&str| json!({"name": name, "image": "cart:1"});
        let mut containers: Vec<Value> = CONTAINERS.iter().map(container).collect();
        if !place.is_multiple_of(2) {
            let hook = json!({"exec": {"command": ["sleep", "1"]}});
            containers[0]["lifecycle"] = json!({ "preStop": hook });
        }
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": pod_name(place), "namespace": "default", "labels": {"app": "cart"}},
            "spec": {"terminationGracePeriodSeconds": 2, "containers": containers}});
        if place >= self.ungated {
            pod["spec"]["readinessGates"] = json!([{"conditionType": "KruisePodReady"}]);
        }
        pod
    }
}

impl Recreate {
    /// The request of this name for a pod.
    pub fn request(&self, name: &str, pod: &str) -> Value {
        let containers = CONTAINERS.map(|name| json!({"name": name}));
        let containers = &containers[..if self.all { 2 } else { 1 }];
        let mut strategy = json!({"orderedRecreate": self.ordered, "forceRecreate": self.force,
            "minStartedSeconds": self.started});
        if let Some(grace) = self.grace {
            strategy["terminationGracePeriodSeconds"] = grace.into();
        }
        if let Some(unready) = self.unready {
            strategy["unreadyGracePeriodSeconds"] = unready.into();
        }
        let mut spec = json!({"podName": pod, "containers": containers, "strategy": strategy});
        if let Some(deadline) = self.deadline {
            spec["activeDeadlineSeconds"] = deadline.into();
        }
        if let Some(ttl) = self.ttl {
            spec["ttlSecondsAfterFinished"] = ttl.into();
        }
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    }
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// A request for the pod at a place.
    Request(u8, Recreate),
    /// A request is deleted, one of those that there are.
    Delete(u8),
    /// The pod at a place is deleted, and created again as at first.
    Pod(u8),
    /// Something happens to the agent of a node.
    Agent(u8, AgentEdit),
}
