//! The input of a plan of a SidecarSet: its objects, read from the caches or given.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::sidecarset::SidecarSet;
use kruise_plan_kit::{
    Memory, ledger,
    sidecars::{Matcher, canary_of, names},
};
use kruise_plan_sidecars::{Explain, Repairs, Snapshot};
use kruise_views::{NamespaceView, PodView, RevisionView};
use kube_cache::ObjectKey;
use serde_json::Value;

use super::cached::PODS_BY_SIDECARSET;
use super::{CachedSidecarSet, SidecarSets, uninjected::is_selected_by_webhooks};
use crate::budgets::Budgets;

/// The objects that a plan of one SidecarSet depends on. Each kind is from one snapshot of its cache.
pub struct Inputs {
    pods: Vec<Arc<PodView>>,
    /// Pods that its selector may match, without its sidecars.
    pub(super) not_injected: Vec<Arc<PodView>>,
    /// Matchers of its canaries: pods that match one get the canary instead.
    canaries: Vec<Matcher>,
    pub(super) revisions: Vec<Arc<RevisionView>>,
    /// Names of the namespaces that its namespace selector matches; empty without a selector.
    namespaces: BTreeSet<String>,
    /// Names of all SidecarSets, sorted.
    sets: Vec<String>,
    budgets: Budgets,
}

impl Inputs {
    /// From these objects. Of the revisions with the set's name, it keeps those that the set owns and those without an
    /// owner.
    pub fn new(
        set: &SidecarSet,
        pods: Vec<Arc<PodView>>,
        mut revisions: Vec<Arc<RevisionView>>,
        namespaces: Vec<Arc<NamespaceView>>,
        mut sets: Vec<String>,
    ) -> Self {
        revisions.retain(|revision| {
            let owner = revision.owner_uid();
            revision.labels.get(names::SET_NAME) == Some(&set.metadata.name)
                && owner.is_none_or(|uid| uid == set.metadata.uid)
        });
        sets.sort_unstable();
        let selector = set.spec.namespace_selector.as_ref();
        let matches = |namespace: &&Arc<NamespaceView>| {
            selector.is_some_and(|selector| selector.matches_by(|key| namespace.labels().get(key)))
        };
        let namespaces = namespaces.iter().filter(matches);
        Self {
            namespaces: namespaces.map(|namespace| namespace.name().to_owned()).collect(),
            pods,
            not_injected: Vec::new(),
            canaries: Vec::new(),
            budgets: Budgets::default(),
            revisions,
            sets,
        }
    }

    /// Adds the pods that the set's selector may match, without its sidecars, and the set's canaries among `sets`.
    #[must_use]
    pub fn with_not_injected(
        mut self,
        set: &SidecarSet,
        manager_namespace: &str,
        mut pods: Vec<Arc<PodView>>,
        namespaces: &[Arc<NamespaceView>],
        sets: &[Arc<Value>],
    ) -> Self {
        pods.retain(|pod| {
            let of_pod = namespaces
                .iter()
                .find(|namespace| *namespace.name() == *pod.namespace);
            *pod.namespace != *manager_namespace
                && is_selected_by_webhooks(&pod.namespace, of_pod.map(|found| &**found))
        });
        let is_canary = |other: &&Arc<Value>| canary_of(other) == Some(&*set.metadata.name);
        self.canaries = sets
            .iter()
            .filter(is_canary)
            .map(|canary| Matcher::of(canary))
            .collect();
        self.not_injected = pods;
        self
    }

    /// Adds the budgets of all namespaces.
    #[must_use]
    pub fn with_budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// True if a canary of the set matches this pod.
    fn has_canary(&self, pod: &PodView) -> bool {
        let matches = |canary: &Matcher| canary.matches_pod(|key| pod.labels.get(key));
        self.canaries.iter().any(matches)
    }

    /// Passes the snapshot of these inputs to `plan`.
    pub fn with_snapshot<T>(&self, parameters: &Parameters<'_>, plan: impl FnOnce(&Snapshot<'_>) -> T) -> T {
        let is_set = |name: &str| self.sets.binary_search_by(|have| have.as_str().cmp(name)).is_ok();
        let snapshot = Snapshot {
            set: parameters.set,
            api_version: parameters.api_version,
            namespace: parameters.namespace,
            pods: &self.pods,
            not_injected: &self.not_injected,
            has_canary: &|pod| self.has_canary(pod),
            repairs: parameters.repairs,
            revisions: &self.revisions,
            in_namespace: &|name| self.namespaces.contains(name),
            is_set: &is_set,
            budgets: ledger::Budgets {
                gates: self.budgets.limits,
                all: &self.budgets,
            },
            memory: parameters.memory,
            explain: parameters.explain,
        };
        plan(&snapshot)
    }
}

/// The SidecarSet to plan, and what the plan depends on beside objects in the caches.
pub struct Parameters<'p> {
    /// The set.
    pub set: &'p SidecarSet,
    /// `apiVersion` of the served version.
    pub api_version: &'p str,
    /// Namespace of the revisions.
    pub namespace: &'p str,
    /// Memory of the last execution.
    pub memory: &'p Memory,
    /// Repairs of uninjected pods that were tried.
    pub repairs: &'p Repairs,
    /// Whether the plan has explanations.
    pub explain: Explain,
}

impl SidecarSets {
    /// Reads the caches: one snapshot of each.
    pub(super) fn read_inputs(&self, cached: &CachedSidecarSet, set: &SidecarSet) -> Inputs {
        let pods = self
            .pods
            .snapshot()
            .by_index(&PODS_BY_SIDECARSET, &set.metadata.name);
        let namespaces = if set.spec.namespace_selector.is_some() {
            self.namespaces.snapshot().list("")
        } else {
            Vec::new()
        };
        let mut not_injected = self.uninjected.of(&cached.set, &self.pods);
        if !not_injected.is_empty() {
            let snapshot = self.namespaces.snapshot();
            not_injected.retain(|pod| {
                let of_pod = snapshot.get(&ObjectKey::new("", &*pod.namespace));
                *pod.namespace != *self.namespace
                    && is_selected_by_webhooks(&pod.namespace, of_pod.as_deref())
            });
        }
        let sets = self.sets.snapshot().list("");
        let canaries = sets
            .iter()
            .filter(|other| other.set.base.as_ref() == Some(&set.metadata.name));
        let canaries = canaries.map(|canary| canary.set.matcher.clone()).collect();
        let sets = sets.iter().map(|set| set.metadata.name.clone()).collect();
        let revisions = {
            let found = self.revisions.snapshot().list(&self.namespace);
            found.iter().map(|one| one.view.clone()).collect()
        };
        Inputs {
            not_injected,
            canaries,
            budgets: self.budgets.read(""),
            ..Inputs::new(set, pods, revisions, namespaces, sets)
        }
    }
}
