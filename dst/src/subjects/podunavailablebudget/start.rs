//! A budget as users create it.

use crate::rules::prelude::*;

pub const NAME: &str = "podunavailablebudget";
pub const BUDGETS: Resource = Resource::policy("podunavailablebudgets", "PodUnavailableBudget");
pub const DEPLOYMENTS: Resource = apps("deployments", "Deployment");
pub const REPLICASETS: Resource = apps("replicasets", "ReplicaSet");
/// StatefulSets of Kubernetes.
pub const APPS_STATEFULSETS: Resource = apps("statefulsets", "StatefulSet");

const fn apps(plural: &'static str, kind: &'static str) -> Resource {
    Resource {
        group: "apps",
        version: "v1",
        plural,
        kind,
    }
}

/// A budget beside a workload, as it is when it is created.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Kind of the workload.
    pub workload: Workload,
    /// Does it name the workload? Otherwise it selects its pods.
    pub target: bool,
    /// How many pods may be out.
    pub limit: Limit,
    /// `protectOperations`.
    pub operations: Vec<String>,
    /// The gate for updates.
    pub updates: bool,
    /// Is it created before the workload? Otherwise a step creates it.
    pub at_first: bool,
    /// Are there guests: Deployments beside the workload that come and go? The budget selects the pods of all or,
    /// with `target`, names the first guest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guests: bool,
}

/// Names of guests.
pub const GUESTS: [&str; 2] = ["guest-a", "guest-b"];

/// A guest.
pub fn guest(name: &str, replicas: u32, image: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"guest": name}},
            "template": {
                "metadata": {"labels": {"guest": name, NAME: "on"}},
                "spec": {"terminationGracePeriodSeconds": 3, "containers": [
                    {"name": "main", "image": format!("web:{image}")}]},
            },
        },
    })
}

/// The workload below a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Workload {
    /// CloneSet `web`.
    CloneSet,
    /// StatefulSet `web`.
    StatefulSet,
    /// Deployment `web`.
    Deployment,
}

impl Workload {
    /// Its kind and the version that budgets name.
    pub fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::CloneSet => ("apps.kruise.io/v1beta1", "CloneSet"),
            Self::StatefulSet => ("apps.kruise.io/v1beta1", "StatefulSet"),
            Self::Deployment => ("apps/v1", "Deployment"),
        }
    }
}

/// How many pods may be out, as text: `2` or `20%`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Limit {
    /// `maxUnavailable`.
    Out(String),
    /// `minAvailable`.
    In(String),
}

impl Limit {
    /// Both members of a specification.
    pub fn spec(&self) -> Value {
        match self {
            Self::Out(text) => json!({"maxUnavailable": int_or_string(text), "minAvailable": null}),
            Self::In(text) => json!({"maxUnavailable": null, "minAvailable": int_or_string(text)}),
        }
    }
}

/// The budget of a name.
pub fn manifest(start: &Start, name: &str) -> Value {
    let (api_version, kind) = start.workload.kind();
    let mut spec = start.limit.spec();
    if start.target {
        let name = if start.guests { GUESTS[0] } else { "web" };
        spec["targetRef"] = json!({"apiVersion": api_version, "kind": kind, "name": name});
    } else if start.guests {
        spec["selector"] = json!({"matchLabels": {NAME: "on"}});
    } else {
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
    }
    if !start.operations.is_empty() {
        spec["protectOperations"] = json!(start.operations);
    }
    if let Some(members) = spec.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    json!({"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
           "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}
