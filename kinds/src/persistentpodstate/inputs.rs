//! The input of a plan of a PersistentPodState, read from the caches or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::{names::APPS_GROUP, persistentpodstate::PersistentPodState};
use kruise_plan_kit::{
    Explain, Memory, Plan,
    workloads::{AllowedKind, Aspect, Known, Source, Workload},
};
use kruise_plan_podstate::persistentpodstate::{Generator, Nodes, Snapshot, plan};
use kruise_views::{NodeView, Numbering, PodView, WorkloadView};
use kube_cache::{ObjectKey, SharedInformer};

use super::{cached::target_of, keys::is_allowed};

/// The objects that a plan of one PersistentPodState depends on.
pub struct Inputs<'a> {
    /// Its namespace and name.
    pub key: &'a ObjectKey,
    /// It, if it exists.
    pub state: Option<&'a PersistentPodState>,
    /// What is known of workloads of its namespace.
    pub known: Source<'a>,
    /// The kinds of workloads that administrators list.
    pub allowed: &'a [AllowedKind],
    /// Is the start of ordinals a feature of StatefulSets of `apps.kruise.io` here?
    pub start_ordinal: bool,
    /// The pods of a controller, by its uid.
    pub pods_of: &'a dyn Fn(&str) -> Vec<Arc<PodView>>,
    /// The controllers of pods of its namespace that have its name and are of a kind that administrators list.
    pub owners: Vec<Workload>,
    /// The nodes.
    pub nodes: &'a dyn Nodes,
    /// The name of another PersistentPodState that is for a workload.
    pub other: &'a dyn Fn(&Workload) -> Option<String>,
}

impl Inputs<'_> {
    /// The plan; `None` if there is neither a PersistentPodState nor a workload that one could be generated for.
    pub fn plan(&self, memory: &Memory, explain: Explain, now: Timestamp) -> Option<Plan> {
        let generators = self.generators();
        if self.state.is_none() && generators.is_empty() {
            return None;
        }
        let target = self.state.map(|state| {
            let target = target_of(state);
            self.numbered(&target, (self.known)(&target, Aspect::Scale))
        });
        let target = target.unwrap_or(Known::Gone);
        let pods = match &target {
            Known::Found(found) => (self.pods_of)(&found.uid),
            _ => Vec::new(),
        };
        let snapshot = Snapshot {
            namespace: &self.key.namespace,
            name: &self.key.name,
            state: self.state,
            target,
            pods: &pods,
            nodes: self.nodes,
            generators: &generators,
            memory,
            explain,
        };
        Some(plan(&snapshot, now))
    }

    /// Where the feature is off, the pods of a StatefulSet of `apps.kruise.io` are numbered from zero on whatever
    /// it says.
    fn numbered(&self, workload: &Workload, known: Known) -> Known {
        match known {
            Known::Found(found)
                if workload.group == APPS_GROUP
                    && !self.start_ordinal
                    && found.numbering.as_ref().is_some_and(|one| one.start != 0) =>
            {
                let reserved = found.numbering.as_ref().map(|one| one.reserved.clone());
                let numbering = Numbering::new(0, reserved.unwrap_or_default());
                let found = WorkloadView::clone(&found).numbered(numbering);
                Known::Found(Arc::new(found))
            }
            known => known,
        }
    }

    /// The workloads of this name that exist and are of a kind that one can be generated for.
    fn generators(&self) -> Vec<Generator> {
        let name = &self.key.name;
        let built_in = [
            ("apps/v1", Workload::new("apps", "StatefulSet", name)),
            (
                "apps.kruise.io/v1beta1",
                Workload::new(APPS_GROUP, "StatefulSet", name),
            ),
        ];
        let built_in = built_in.map(|(api_version, workload)| (api_version.to_owned(), workload));
        // Others are read one by one, so only those of which something is known.
        let target = self.state.map(target_of);
        let target = target.filter(|target| *target.name == **name);
        let mut others: Vec<Workload> = self.owners.clone();
        others.extend(target);
        others.sort();
        others.dedup();
        let listed = others
            .into_iter()
            .filter(|workload| is_allowed(self.allowed, workload));
        let listed = listed.filter_map(|workload| {
            let mut kinds = self.allowed.iter();
            let kind = kinds.find(|kind| (&*kind.group, &*kind.kind) == workload.group_kind())?;
            Some((kind.api_version(), workload))
        });
        built_in
            .into_iter()
            .chain(listed)
            .filter_map(|(api_version, workload)| {
                let Known::Found(view) = (self.known)(&workload, Aspect::Scale) else {
                    return None;
                };
                // Without its annotations, nothing says whether it asks for one.
                if view.scale_only {
                    return None;
                }
                Some(Generator {
                    api_version,
                    other: (self.other)(&workload),
                    workload,
                    view,
                })
            })
            .collect()
    }
}

/// The cache of nodes.
pub(super) struct CachedNodes<'a>(pub(super) &'a SharedInformer<NodeView>);

impl Nodes for CachedNodes<'_> {
    fn get(&self, name: &str) -> Option<Arc<NodeView>> {
        self.0.snapshot().get(&ObjectKey::new("", name))
    }

    fn any(&self, holds: &dyn Fn(&NodeView) -> bool) -> bool {
        self.0.snapshot().iter().any(|node| holds(node))
    }
}
