//! What a plan is made from.

use std::sync::Arc;

use kruise_api::{
    names::persistentpodstate::{GENERATED, PREFERRED, REQUIRED},
    persistentpodstate::PersistentPodState,
};
use kruise_plan_kit::{
    Explain, Involved, Memory,
    workloads::{Known, Workload},
};
use kruise_views::{NodeView, PodView, WorkloadView};

/// One snapshot of a PersistentPodState, of its workload with its pods, and of the workloads that have its name.
pub struct Snapshot<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The PersistentPodState, if it exists.
    pub state: Option<&'a PersistentPodState>,
    /// What is known of its target; without meaning if it does not exist.
    pub target: Known,
    /// The pods that the target controls, in any state and order.
    pub pods: &'a [Arc<PodView>],
    /// The nodes of the cluster.
    pub nodes: &'a dyn Nodes,
    /// The workloads of its name and namespace that one can be generated for, in any order.
    pub generators: &'a [Generator],
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// A workload that a PersistentPodState can be generated for.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    /// Group and version, for references to it.
    pub api_version: String,
    /// Its group, kind and name.
    pub workload: Workload,
    /// The workload.
    pub view: Arc<WorkloadView>,
    /// Another PersistentPodState that is for this workload.
    pub other: Option<String>,
}

/// The nodes of the cluster.
pub trait Nodes {
    /// The node of this name.
    fn get(&self, name: &str) -> Option<Arc<NodeView>>;

    /// Is there a node that this holds of?
    fn any(&self, holds: &dyn Fn(&NodeView) -> bool) -> bool;
}

impl Generator {
    /// Do its annotations ask for a PersistentPodState? It is made once they name topology.
    pub fn is_enabled(&self) -> bool {
        self.view.annotations.get(GENERATED) == Some("true")
    }

    /// Do its annotations name topology?
    pub fn has_topology(&self) -> bool {
        [REQUIRED, PREFERRED]
            .iter()
            .any(|key| !self.annotation(key).is_empty())
    }

    /// An annotation; empty if it is absent.
    pub(super) fn annotation(&self, key: &str) -> &str {
        self.view.annotations.get(key).unwrap_or_default()
    }

    /// The workload, as an event names it.
    pub(super) fn involved(&self) -> Involved {
        Involved {
            api_version: self.api_version.as_str().into(),
            kind: self.workload.kind.as_str().into(),
            namespace: self.view.namespace.clone(),
            name: self.view.name.clone(),
            uid: self.view.uid.clone(),
            resource_version: self.view.resource_version.clone(),
        }
    }
}
