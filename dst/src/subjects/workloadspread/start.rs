//! A WorkloadSpread as users create it.

use crate::engine::boot::NODES;
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;
use crate::subjects::podunavailablebudget::start::{DEPLOYMENTS, REPLICASETS};

pub const NAME: &str = "workloadspread";
pub const SPREADS: Resource = Resource::kruise("workloadspreads", "WorkloadSpread");
/// Label of the pods of a Deployment that says their version.
pub const DEPLOYMENT_VERSION: &str = "pod-template-hash";
/// Label by which the patch of a subset marks its pods.
pub const POOL: &str = "pool";
/// Name of every WorkloadSpread.
pub const SPREAD: &str = "web-spread";

/// A WorkloadSpread beside a workload, as it is when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Kind of the workload.
    pub workload: Workload,
    /// `maxReplicas` of each subset, as text; empty for none. Each has a node of its own.
    pub limits: Vec<String>,
    /// `rescheduleCriticalSeconds`; zero for the strategy `Fixed`.
    pub adaptive: u32,
    /// Is it created before the workload? Otherwise a step creates it.
    pub at_first: bool,
    /// A policy of somebody else refuses to put pods that are there into a subset.
    #[serde(default)]
    pub refused: bool,
}

/// The workload whose pods are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Workload {
    /// CloneSet `web`.
    CloneSet,
    /// Deployment `web`.
    Deployment,
}

impl Workload {
    /// Its resource.
    pub fn resource(self) -> Resource {
        match self {
            Self::CloneSet => CLONESETS,
            Self::Deployment => DEPLOYMENTS,
        }
    }

    /// The resource of what controls its pods.
    pub fn controls(self) -> Resource {
        match self {
            Self::CloneSet => CLONESETS,
            Self::Deployment => REPLICASETS,
        }
    }
}

/// Name of the subset at a place.
pub fn subset(place: usize) -> String {
    format!("s{place}")
}

/// The node of the subset at a place.
pub fn node(place: usize) -> &'static str {
    NODES.get(place).copied().unwrap_or_default()
}

/// `subsets` with these limits.
pub fn subsets(limits: &[String]) -> Value {
    let subset = |(place, limit): (usize, &String)| {
        let name = subset(place);
        let node = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node(place)]});
        let mut one = json!({"name": name, "requiredNodeSelector": {"matchExpressions": [node]},
            "patch": {"metadata": {"labels": {POOL: name}}}});
        if !limit.is_empty() {
            one["maxReplicas"] = int_or_string(limit);
        }
        one
    };
    limits.iter().enumerate().map(subset).collect()
}

/// The WorkloadSpread.
pub fn manifest(start: &Start) -> Value {
    let target = start.workload.resource();
    let strategy = if start.adaptive > 0 {
        json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": start.adaptive}})
    } else {
        json!({"type": "Fixed"})
    };
    json!({
        "apiVersion": SPREADS.api_version(), "kind": SPREADS.kind,
        "metadata": {"name": SPREAD, "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": target.api_version(), "kind": target.kind, "name": "web"},
            "subsets": subsets(&start.limits),
            "scheduleStrategy": strategy,
        },
    })
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Creates the WorkloadSpread; means nothing if it is there.
    Create,
    /// Deletes it.
    Delete,
    /// Other limits, one for each subset.
    Limits(Vec<String>),
    /// Deletes or evicts all pods of the subset at a place, one after the other without a pause.
    Empty(u8, bool),
}
