//! The input of a plan of a StatefulSet: its objects, read from the caches or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::statefulset::StatefulSet;
use kruise_frame::caches::{PODS_BY_OWNER, revisions_of};
use kruise_plan_kit::{Memory, Plan, ledger};
use kruise_plan_workloads::statefulset::{Explain, Options, Snapshot, plan};
use kruise_views::{ClaimView, ImageJobView, PodView, RevisionView, StorageClassView};

use super::{
    StatefulSets,
    by_name::{ByName, set_of_pod},
    cached::{CLAIMS_BY_SET_NAME, PODS_BY_SET_NAME, in_namespace},
};
use crate::budgets::Budgets;
use crate::imagepulljob::cached::PULL_JOBS_BY_OWNER;

/// The objects of one StatefulSet. Each kind is from one snapshot of its cache.
pub struct Inputs {
    pods: Vec<Arc<PodView>>,
    /// Pods with a name of the set's, whosever they are.
    named: ByName<PodView>,
    claims: ByName<ClaimView>,
    classes: ByName<StorageClassView>,
    revisions: Vec<Arc<RevisionView>>,
    pull_jobs: Vec<Arc<ImageJobView>>,
    budgets: Budgets,
}

impl Inputs {
    /// From these objects. Of the pods of its namespace, it keeps those that the set controls and those with a name
    /// of the set's; of the revisions, those of the set ([`revisions_of`]).
    pub fn new(
        set: &StatefulSet,
        mut pods: Vec<Arc<PodView>>,
        claims: Vec<Arc<ClaimView>>,
        revisions: Vec<Arc<RevisionView>>,
    ) -> Self {
        // A restored pod may name the set as its controller, in another namespace.
        pods.retain(|pod| *pod.namespace == *set.metadata.namespace);
        let is_named = |pod: &&Arc<PodView>| set_of_pod(&pod.name) == Some(&*set.metadata.name);
        let named = pods.iter().filter(is_named).cloned().collect();
        let is_candidate = |pod: &&Arc<PodView>| match &pod.controller {
            Some(owner) => *owner.uid == *set.metadata.uid,
            None => is_named(pod),
        };
        Self {
            pods: pods.iter().filter(is_candidate).cloned().collect(),
            named: ByName::new(named),
            claims: ByName::new(claims),
            classes: ByName::new(Vec::new()),
            revisions: revisions_of(&set.metadata, &set.spec.selector, revisions),
            pull_jobs: Vec::new(),
            budgets: Budgets::default(),
        }
    }

    /// Adds the storage classes of the cluster.
    #[must_use]
    pub fn with_classes(mut self, classes: Vec<Arc<StorageClassView>>) -> Self {
        self.classes = ByName::new(classes);
        self
    }

    /// Adds the set's jobs that pull images.
    #[must_use]
    pub fn with_pull_jobs(mut self, jobs: Vec<Arc<ImageJobView>>) -> Self {
        self.pull_jobs = jobs;
        self
    }

    /// The pods that the set controls or may adopt.
    pub fn pods(&self) -> &[Arc<PodView>] {
        &self.pods
    }

    /// The pod of this name, which is one of the set's, whosever the pod is.
    pub(super) fn find_pod(&self, name: &str) -> Option<Arc<PodView>> {
        self.named.find(name)
    }

    /// The claim of this name.
    pub(super) fn find_claim(&self, name: &str) -> Option<Arc<ClaimView>> {
        self.claims.find(name)
    }

    /// Adds the budgets of the namespace.
    #[must_use]
    pub fn with_budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// Plans the StatefulSet.
    pub fn plan(
        &self,
        set: &StatefulSet,
        api_version: &str,
        options: Options,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            set,
            api_version,
            pods: &self.pods,
            pod: &|name| self.find_pod(name),
            claim: &|name| self.find_claim(name),
            class: &|name| self.classes.find(name),
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

impl StatefulSets {
    /// Reads the caches: one snapshot of each.
    pub(super) fn read_inputs(&self, set: &StatefulSet) -> Inputs {
        let uid = &*set.metadata.uid;
        let name = in_namespace(&set.metadata.namespace, &set.metadata.name);
        let claims = self.claims.snapshot().by_index(&CLAIMS_BY_SET_NAME, &name);
        let snapshot = self.pods.snapshot();
        let mut pods = snapshot.by_index(&PODS_BY_SET_NAME, &name);
        let is_own = |pod: &Arc<PodView>| pod.controller.as_ref().is_some_and(|owner| *owner.uid == *uid);
        pods.retain(|pod| !is_own(pod));
        pods.extend(snapshot.by_index(&PODS_BY_OWNER, uid));
        drop(snapshot);
        let revisions = self.revisions.snapshot().list(&set.metadata.namespace);
        let pull_jobs = self.pull_jobs.snapshot().by_index(&PULL_JOBS_BY_OWNER, uid);
        let inputs = Inputs::new(set, pods, claims, revisions)
            .with_pull_jobs(pull_jobs)
            .with_budgets(self.budgets.read(&set.metadata.namespace));
        if self.options.resize_claims {
            inputs.with_classes(self.classes.snapshot().list(""))
        } else {
            inputs
        }
    }
}
