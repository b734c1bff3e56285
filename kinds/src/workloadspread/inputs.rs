//! The input of a plan of a WorkloadSpread: its target and the pods of that, read from the caches or given.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use kruise_api::workloadspread::WorkloadSpread;
use kruise_plan_kit::{
    Explain, Memory, Plan,
    spread::ListedKind,
    workloads::{Aspect, Known, Source, Workload, of_target},
};
use kruise_plan_spread::workloadspread::{Nodes, Snapshot, plan};
use kruise_views::{NodeView, PodView, WorkloadView};
use kube_cache::{ObjectKey, SharedInformer};

use super::cached::target_of;

/// The objects that a plan of one WorkloadSpread depends on.
pub struct Inputs<'a> {
    /// It.
    pub spread: &'a WorkloadSpread,
    /// What is known of workloads of its namespace.
    pub known: Source<'a>,
    /// What is known of a workload as it is stored, with all of its numbers.
    pub stored: &'a dyn Fn(&Workload) -> Known,
    /// The pods of a controller, by its uid.
    pub pods_of: &'a dyn Fn(&str) -> Vec<Arc<PodView>>,
    /// All pods of its namespace.
    pub all_pods: &'a dyn Fn() -> Vec<Arc<PodView>>,
    /// The ReplicaSets of a Deployment, by its uid.
    pub replica_sets_of: &'a dyn Fn(&str) -> Vec<Arc<WorkloadView>>,
    /// The nodes.
    pub nodes: &'a dyn Nodes,
    /// The kinds that administrators list.
    pub listed: &'a [ListedKind],
    /// Names of the WorkloadSpreads of its namespace that go before it.
    pub before: &'a BTreeSet<String>,
}

/// The target, and its pods.
pub struct Found {
    target: Known,
    replica_sets: Vec<Arc<WorkloadView>>,
    pub pods: Vec<Arc<PodView>>,
}

impl Inputs<'_> {
    /// Plans the WorkloadSpread.
    pub fn plan(&self, memory: &Memory, explain: Explain, now: Timestamp) -> Plan {
        self.plan_of(&self.find(), memory, explain, now)
    }

    /// Finds the target and its pods.
    pub fn find(&self) -> Found {
        let mut found = Found {
            target: Known::Gone,
            replica_sets: Vec::new(),
            pods: Vec::new(),
        };
        let Some(target) = target_of(self.spread) else {
            return found;
        };
        found.target = self.target(&target);
        let Known::Found(workload) = &found.target else {
            return found;
        };
        match target.group_kind() {
            ("apps", "Deployment") => {
                let mut sets = (self.replica_sets_of)(&workload.uid);
                sets.retain(|set| !set.deleting);
                found.pods = match sets.as_slice() {
                    [] => (self.pods_of)(&workload.uid),
                    sets => sets.iter().flat_map(|set| (self.pods_of)(&set.uid)).collect(),
                };
                found.replica_sets = sets;
            }
            _ if target.owns_pods_by_itself() || target.group_kind() == ("batch", "Job") => {
                found.pods = (self.pods_of)(&workload.uid);
            }
            _ => {
                // Pods that still run are counted even if none are wanted.
                let running = |workload: &Workload, aspect: Aspect| match (self.known)(workload, aspect) {
                    Known::Found(view) if *workload == target => Known::Found(Arc::new(WorkloadView {
                        replicas: None,
                        ..WorkloadView::clone(&view)
                    })),
                    known => known,
                };
                let pods = of_target(&target, &(self.all_pods)(), &running);
                if !pods.missing.is_empty() {
                    found.target = Known::NotYet;
                }
                found.pods = pods.pods;
            }
        }
        found
    }

    /// The target. Where paths lead to its replicas, with all of its numbers.
    fn target(&self, target: &Workload) -> Known {
        let filter = self.spread.spec.target_filter.as_ref();
        let has_paths = filter.is_some_and(|filter| !filter.replicas_path_list.is_empty());
        match (self.known)(target, Aspect::Scale) {
            Known::Found(view) if has_paths && view.numbers.is_none() => match (self.stored)(target) {
                Known::Found(stored) => Known::Found(Arc::new(WorkloadView {
                    numbers: stored.numbers.clone(),
                    ..WorkloadView::clone(&view)
                })),
                unknown => unknown,
            },
            known => known,
        }
    }

    /// Plans the WorkloadSpread whose target was found.
    pub fn plan_of(&self, found: &Found, memory: &Memory, explain: Explain, now: Timestamp) -> Plan {
        let snapshot = Snapshot {
            spread: self.spread,
            target: &found.target,
            replica_sets: &found.replica_sets,
            pods: &found.pods,
            nodes: self.nodes,
            listed: self.listed,
            before: self.before,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}

/// The names of those that go before a WorkloadSpread: they exist, are not being deleted, and their names are smaller.
pub fn before<'s>(
    spread: &WorkloadSpread,
    all: impl Iterator<Item = &'s WorkloadSpread>,
) -> BTreeSet<String> {
    let (own, namespace) = (&spread.metadata.name, &spread.metadata.namespace);
    let names = all
        .map(|other| &other.metadata)
        .filter(|other| {
            other.namespace == *namespace && other.deletion_timestamp.is_none() && other.name < *own
        })
        .map(|other| other.name.clone());
    names.collect()
}

/// The cache of nodes.
pub(super) struct CachedNodes<'a>(pub(super) &'a SharedInformer<NodeView>);

impl Nodes for CachedNodes<'_> {
    fn get(&self, name: &str) -> Option<Arc<NodeView>> {
        self.0.snapshot().get(&ObjectKey::new("", name))
    }
}
