//! The input of a plan of a DaemonSet: its objects, read from the caches or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::daemonset::DaemonSet;
use kruise_frame::caches::{PODS_BY_OWNER, revisions_of};
use kruise_plan_kit::{Memory, Plan, fit::Placement, ledger};
use kruise_plan_workloads::daemonset::{Explain, Options, Placed, Snapshot, placement, plan};
use kruise_views::{ImageJobView, NodeView, PodView, RevisionView};

use super::{DaemonSets, cached::ORPHANS};
use crate::imagepulljob::cached::PULL_JOBS_BY_OWNER;
use crate::{
    budgets::Budgets,
    placing::{Placing, fitted, has_node},
};

/// The objects of one DaemonSet. Each kind is from one snapshot of its cache.
pub struct Inputs {
    nodes: Vec<Placed>,
    placement: Arc<Placement>,
    pods: Vec<Arc<PodView>>,
    revisions: Vec<Arc<RevisionView>>,
    pull_jobs: Vec<Arc<ImageJobView>>,
    budgets: Budgets,
}

impl Inputs {
    /// From these objects. Of the pods of its namespace, it keeps those that the set controls and those that it may
    /// adopt; of the revisions, those of the set ([`revisions_of`]).
    pub fn new(
        set: &DaemonSet,
        nodes: Vec<Arc<NodeView>>,
        pods: Vec<Arc<PodView>>,
        revisions: Vec<Arc<RevisionView>>,
    ) -> Self {
        let placement = placement(set);
        Self {
            nodes: fitted(&placement, nodes),
            placement: Arc::new(placement),
            pods: pods_of(set, pods),
            revisions: revisions_of(&set.metadata, &set.spec.selector, revisions),
            pull_jobs: Vec::new(),
            budgets: Budgets::default(),
        }
    }

    /// Adds the set's jobs that pull images.
    #[must_use]
    pub fn with_pull_jobs(mut self, jobs: Vec<Arc<ImageJobView>>) -> Self {
        self.pull_jobs = jobs;
        self
    }

    /// Adds the budgets of the namespace.
    #[must_use]
    pub fn with_budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// The pods that the set controls or may adopt.
    pub fn pods(&self) -> &[Arc<PodView>] {
        &self.pods
    }

    /// Is there a node of this name?
    pub fn has_node(&self, name: &str) -> bool {
        has_node(&self.nodes, name)
    }

    /// Plans the DaemonSet.
    pub fn plan(
        &self,
        set: &DaemonSet,
        api_version: &str,
        options: Options,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            set,
            api_version,
            nodes: &self.nodes,
            placement: &self.placement,
            pods: &self.pods,
            revisions: &self.revisions,
            pull_jobs: &self.pull_jobs,
            budgets: ledger::Budgets {
                gates: self.budgets.limits,
                all: &self.budgets,
            },
            options,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}

/// Of these pods, those of the namespace of the set that it controls, and those without a controller that it selects.
fn pods_of(set: &DaemonSet, mut pods: Vec<Arc<PodView>>) -> Vec<Arc<PodView>> {
    pods.retain(|pod| {
        // A restored pod may name the set as its controller, in another namespace.
        *pod.namespace == *set.metadata.namespace
            && match &pod.controller {
                Some(owner) => *owner.uid == *set.metadata.uid,
                None => set.spec.selector.matches_by(|key| pod.labels.get(key)),
            }
    });
    pods
}

impl DaemonSets {
    /// Reads the caches: one snapshot of each.
    pub(super) fn read_inputs(&self, placing: &Placing<DaemonSet>) -> Inputs {
        let metadata = &placing.object.metadata;
        let snapshot = self.pods.snapshot();
        let mut pods = snapshot.by_index(&PODS_BY_OWNER, &metadata.uid);
        pods.extend(snapshot.by_index(&ORPHANS, &metadata.namespace));
        drop(snapshot);
        let nodes = self.nodes.snapshot().list("");
        let revisions = self.revisions.snapshot().list(&metadata.namespace);
        let pull_jobs = self.pull_jobs.snapshot();
        Inputs {
            nodes: self.fits.of(&placing.placement, nodes),
            placement: Arc::clone(&placing.placement),
            pods: pods_of(&placing.object, pods),
            revisions: revisions_of(metadata, &placing.object.spec.selector, revisions),
            pull_jobs: pull_jobs.by_index(&PULL_JOBS_BY_OWNER, &metadata.uid),
            budgets: self.budgets.read(&metadata.namespace),
        }
    }
}
