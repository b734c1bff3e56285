//! The input of a plan of a CloneSet: its objects, read from the caches or given.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_api::cloneset::CloneSet;
use kruise_frame::caches::{CLAIMS_BY_OWNER, PODS_BY_OWNER, revisions_of};
use kruise_plan_kit::{Memory, Plan, ledger};
use kruise_plan_workloads::cloneset::{Claims, Explain, Options, Snapshot, plan};
use kruise_views::{ImageJobView, NodeView, PodView, RevisionView};
use kube_cache::{Cached, ObjectKey};

use super::CloneSets;
use crate::budgets::Budgets;
use crate::imagepulljob::cached::PULL_JOBS_BY_OWNER;

/// The objects of one CloneSet. Each kind is from one snapshot of its cache.
pub struct Inputs {
    pods: Vec<Arc<PodView>>,
    claims: Claims,
    revisions: Vec<Arc<RevisionView>>,
    pull_jobs: Vec<Arc<ImageJobView>>,
    budgets: Budgets,
    nodes: BTreeMap<Box<str>, Arc<NodeView>>,
}

impl Inputs {
    /// From these objects. Of the revisions, it keeps those of the CloneSet ([`revisions_of`]).
    pub fn new(
        set: &CloneSet,
        pods: Vec<Arc<PodView>>,
        claims: Claims,
        revisions: Vec<Arc<RevisionView>>,
        nodes: Vec<Arc<NodeView>>,
    ) -> Self {
        let nodes = nodes.into_iter().map(|node| (node.name().into(), node)).collect();
        Self {
            pods,
            claims,
            revisions: revisions_of(&set.metadata, &set.spec.selector, revisions),
            pull_jobs: Vec::new(),
            budgets: Budgets::default(),
            nodes,
        }
    }

    /// Adds the CloneSet's jobs that pull images.
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

    /// Plans the CloneSet.
    pub fn plan(
        &self,
        set: &CloneSet,
        api_version: &str,
        options: Options,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let node = |name: &str| self.nodes.get(name).map(|node| &**node);
        let snapshot = Snapshot {
            set,
            api_version,
            pods: &self.pods,
            claims: &self.claims,
            revisions: &self.revisions,
            pull_jobs: &self.pull_jobs,
            node: &node,
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

impl CloneSets {
    /// Reads the caches: one snapshot of each.
    pub(super) fn read_inputs(&self, set: &CloneSet) -> Inputs {
        let claims = self
            .claims
            .snapshot()
            .by_index(&CLAIMS_BY_OWNER, &set.metadata.uid);
        let snapshot = self.pods.snapshot();
        let mut pods = snapshot.by_index(&PODS_BY_OWNER, &set.metadata.uid);
        // A restored pod may name the set as its controller, in another namespace.
        pods.retain(|pod| *pod.namespace == *set.metadata.namespace);
        let namespace = &set.metadata.namespace;
        let exists = |pod: &str| snapshot.get(&ObjectKey::new(namespace.as_str(), pod)).is_some();
        let claims = Claims::new(set, claims, exists);
        drop(snapshot);
        let revisions = self.revisions.snapshot().list(&set.metadata.namespace);
        let spreads = set
            .spec
            .template
            .pointer("/spec/topologySpreadConstraints")
            .is_some();
        let nodes = if spreads {
            self.nodes.snapshot().list("")
        } else {
            Vec::new()
        };
        let pull_jobs = self
            .pull_jobs
            .snapshot()
            .by_index(&PULL_JOBS_BY_OWNER, &set.metadata.uid);
        Inputs::new(set, pods, claims, revisions, nodes)
            .with_pull_jobs(pull_jobs)
            .with_budgets(self.budgets.read(&set.metadata.namespace))
    }
}
