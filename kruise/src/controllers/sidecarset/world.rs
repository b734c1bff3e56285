//! Everything that a plan of a SidecarSet is made from.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::sidecarset::SidecarSet;
use kruise_plan_kit::{
    Memory,
    sidecars::{Matcher, canary_of, names},
};
use kruise_plan_sidecars::{Explain, Repairs, Snapshot};
use kruise_views::{NamespaceView, PodView, RevisionView};
use kube_cache::{Cached, ObjectKey};
use serde_json::Value;

use super::{CachedSidecarSet, SidecarSets, uninjected::is_in_reach};
use crate::controllers::caches::PODS_BY_SIDECARSET;

/// Everything that belongs to one set, at one instant of each cache.
pub struct World {
    pods: Vec<Arc<PodView>>,
    /// Pods that may be meant and do not have its sidecars.
    pub(super) not_injected: Vec<Arc<PodView>>,
    /// Which pods get a canary of it instead.
    canaries: Vec<Matcher>,
    pub(super) revisions: Vec<Arc<RevisionView>>,
    /// Names of the namespaces that its selector matches; not looked at without one.
    namespaces: BTreeSet<String>,
    /// Names of all sets, sorted.
    sets: Vec<String>,
}

impl World {
    /// From objects in hand: keeps the revisions that carry the set's name and are its own, or nobody's.
    pub fn new(
        set: &SidecarSet,
        pods: Vec<Arc<PodView>>,
        mut revisions: Vec<Arc<RevisionView>>,
        namespaces: Vec<Arc<NamespaceView>>,
        mut sets: Vec<String>,
    ) -> Self {
        revisions.retain(|revision| {
            let owner = revision.owner_uid.as_deref();
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
            revisions,
            sets,
        }
    }

    /// With the pods that may be meant and do not have the sidecars of the set, of a cluster with all these sets.
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
            *pod.namespace != *manager_namespace && is_in_reach(&pod.namespace, of_pod.map(|found| &**found))
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

    /// Is there a canary of the set for this pod?
    fn has_canary(&self, pod: &PodView) -> bool {
        let matches = |canary: &Matcher| canary.matches_pod(|key| pod.labels.get(key));
        self.canaries.iter().any(matches)
    }

    /// Lets `look` see it.
    pub fn look<T>(&self, at: &Look<'_>, look: impl FnOnce(&Snapshot<'_>) -> T) -> T {
        let is_set = |name: &str| self.sets.binary_search_by(|have| have.as_str().cmp(name)).is_ok();
        let observed = Snapshot {
            set: at.set,
            api_version: at.api_version,
            namespace: at.namespace,
            pods: &self.pods,
            not_injected: &self.not_injected,
            has_canary: &|pod| self.has_canary(pod),
            repairs: at.repairs,
            revisions: &self.revisions,
            in_namespace: &|name| self.namespaces.contains(name),
            is_set: &is_set,
            memory: at.memory,
            explain: at.explain,
        };
        look(&observed)
    }
}

/// Which set is looked at, and with what in mind.
pub struct Look<'l> {
    /// The set.
    pub set: &'l SidecarSet,
    /// `apiVersion` on the wire.
    pub api_version: &'l str,
    /// Where revisions are kept.
    pub namespace: &'l str,
    /// What the last execution taught.
    pub memory: &'l Memory,
    /// What was tried for pods without sidecars.
    pub repairs: &'l Repairs,
    /// Is it to be explained?
    pub explain: Explain,
}

impl SidecarSets {
    /// Reads the caches: one instant of each.
    pub(super) fn observe(&self, cached: &CachedSidecarSet, set: &SidecarSet) -> World {
        let pods = self
            .pods
            .snapshot()
            .by_index(&PODS_BY_SIDECARSET, &set.metadata.name);
        let namespaces = if set.spec.namespace_selector.is_some() {
            self.lookups.namespaces.snapshot().list("")
        } else {
            Vec::new()
        };
        let mut not_injected = self.uninjected.of(&cached.set, &self.pods);
        if !not_injected.is_empty() {
            let snapshot = self.lookups.namespaces.snapshot();
            not_injected.retain(|pod| {
                let of_pod = snapshot.get(&ObjectKey::new("", &*pod.namespace));
                *pod.namespace != *self.namespace && is_in_reach(&pod.namespace, of_pod.as_deref())
            });
        }
        let sets = self.lookups.sets.snapshot().list("");
        let canaries = sets
            .iter()
            .filter(|other| other.set.base.as_ref() == Some(&set.metadata.name));
        let canaries = canaries.map(|canary| canary.set.matcher.clone()).collect();
        let sets = sets.iter().map(|set| set.metadata.name.clone()).collect();
        let revisions = {
            let found = self.lookups.revisions.snapshot().list(&self.namespace);
            found.iter().map(|one| one.view.clone()).collect()
        };
        World {
            not_injected,
            canaries,
            ..World::new(set, pods, revisions, namespaces, sets)
        }
    }
}
