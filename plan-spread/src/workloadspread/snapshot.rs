//! What a plan is made from.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::workloadspread::WorkloadSpread;
use kruise_plan_kit::{Explain, Memory, spread::ListedKind, workloads::Known};
use kruise_views::{NodeView, PodView, WorkloadView};

/// One snapshot of a WorkloadSpread, and of its workload with its pods.
pub struct Snapshot<'a> {
    /// The WorkloadSpread.
    pub spread: &'a WorkloadSpread,
    /// What is known of its target.
    pub target: &'a Known,
    /// The ReplicaSets that the target controls, if it is a Deployment.
    pub replica_sets: &'a [Arc<WorkloadView>],
    /// The pods of the target, in any state and order. The target filter is not applied yet.
    pub pods: &'a [Arc<PodView>],
    /// The nodes of the cluster.
    pub nodes: &'a dyn Nodes,
    /// The kinds that administrators list.
    pub listed: &'a [ListedKind],
    /// Names of the WorkloadSpreads of the namespace that go before this one: what they have stays theirs.
    pub before: &'a BTreeSet<String>,
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// The nodes of the cluster.
pub trait Nodes {
    /// The node of this name.
    fn get(&self, name: &str) -> Option<Arc<NodeView>>;
}
