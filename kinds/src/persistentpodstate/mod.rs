//! PersistentPodState: the registration of its controller, and the reconciler.
//!
//! The input of a plan is [`Inputs`]. A key is the name of a PersistentPodState, or of a workload that one may be
//! generated for. Workloads of kinds that administrators list have no cache: they are found by their pods, and read
//! again while plans ask for them ([`Workloads`]). The list is read again every minute.

pub mod cached;
mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::FutureExt;
use jiff::Timestamp;
use kruise_api::{names::APPS_GROUP, persistentpodstate::KIND};
use kruise_frame::{
    caches::{NODES, PODS, PODS_BY_OWNER},
    listed::Listed,
    registration::{Controls, Grant, Registration, Setup, Wiring},
    workloads::{CachedWorkload, Workloads},
};
use kruise_plan_kit::{
    Explain, Memory, ResourceId, events,
    workloads::{AllowedKind, Workload},
};
use kruise_runtime::{
    Served,
    events::ObjectRef,
    metrics::objects::Spec,
    worker::{Outcome, Reconciler},
};
use kruise_views::{NodeView, PodView, WorkloadView};
use kube_cache::{Delta, ObjectKey, SharedInformer};

use crate::persistentpodstate::cached::POD_STATES;
use crate::statefulset::cached::{STATEFULSETS, StatefulSetWorkload};
use crate::workloads::APPS_STATEFULSETS;
use cached::{CachedPodState, POD_STATES_BY_TARGET, target_key};
use inputs::CachedNodes;
use kruise_runtime::invalid_spec;
use kruise_runtime::parsed::Parsed;

pub use inputs::Inputs;

/// The controller.
pub static REGISTRATION: Registration =
    Registration::of::<PersistentPodStates>("persistentpodstate-controller", 3)
        .reconciles(
            &KIND,
            "persistentpodstate-workers",
            "PersistentPodStates handled side by side",
        )
        .reviewed(&kruise_admission::kinds::persistentpodstate::WEBHOOKS)
        .emits(&[
            kruise_plan_podstate::persistentpodstate::reasons::ALL,
            &[&events::WORKLOAD_UNREADABLE],
        ])
        .finds_workloads()
        .paced(INTERVAL)
        .watching(&[ResourceId::PODS, ResourceId::NODES])
        .granted(&[Grant::on(
            kruise_api::persistentpodstate::RESOURCE,
            &["create", "delete", "patch"],
        )])
        .measured(&OVERDUE, &[])
        .explained(explain::explain);

const OVERDUE: Spec = Spec::overdue_writes("persistentpodstate_expectation_leakage");

/// Shortest time between two reconciles of one while changes keep coming.
const INTERVAL: Duration = Duration::from_millis(500);
/// Reconciles one PersistentPodState from the caches.
pub struct PersistentPodStates {
    states: SharedInformer<CachedPodState>,
    pods: SharedInformer<PodView>,
    nodes: SharedInformer<NodeView>,
    stateful_sets: SharedInformer<WorkloadView>,
    advanced: SharedInformer<Parsed<kruise_api::statefulset::StatefulSet>>,
    workloads: Workloads,
    listed: Listed<AllowedKind>,
    start_ordinal: bool,
    served: Arc<Served>,
}

impl Controls for PersistentPodStates {
    fn new(setup: &mut Setup<'_>) -> Self {
        let workloads = setup.parts.workloads.clone();
        let reading = workloads.clone();
        setup.while_leading(Box::new(move |stop| reading.clone().run(stop).boxed()));
        let listed = Listed::default();
        let (finder, followed) = (workloads.clone(), listed.clone());
        setup.while_leading(Box::new(move |stop| {
            let (finder, followed) = (finder.clone(), followed.clone());
            async move { followed.follow(|| finder.allowed_kinds(), stop).await }.boxed()
        }));
        Self {
            states: setup.indexed(&POD_STATES, &[POD_STATES_BY_TARGET]),
            pods: setup.cache(&PODS),
            nodes: setup.cache(&NODES),
            stateful_sets: setup.cache(&APPS_STATEFULSETS),
            advanced: setup.cache(&STATEFULSETS),
            workloads,
            listed,
            start_ordinal: setup.parts.config.gates.on("StatefulSetStartOrdinal"),
            served: setup.parts.served.clone(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.maps(&POD_STATES, |_, delta| keys::of_state(delta));
        wiring.maps(&PODS, |this, delta| {
            keys::of_pod(delta, &this.allowed(), &|namespace, workload| {
                this.targeting(namespace, workload)
            })
        });
        wiring.maps(&NODES, |this, delta| {
            keys::of_node(delta, &|| this.states.snapshot().iter().cloned().collect())
        });
        wiring.maps(&APPS_STATEFULSETS, |this, delta| {
            this.of_workload(("apps", "StatefulSet"), delta, WorkloadView::clone)
        });
        wiring.maps(&STATEFULSETS, |this, delta| {
            this.of_workload((APPS_GROUP, "StatefulSet"), delta, StatefulSetWorkload::view)
        });
        let reconciler = wiring.reconciler();
        let enqueuer = wiring.enqueuer();
        reconciler.workloads.on_change(move |namespace| {
            enqueuer.push_all(|this| this.keys_in(namespace));
        });
        let enqueuer = wiring.enqueuer();
        reconciler
            .listed
            .on_change(move || enqueuer.push_all(Reconciler::keys));
    }
}

impl PersistentPodStates {
    fn allowed(&self) -> Arc<Vec<AllowedKind>> {
        self.listed.kinds()
    }

    /// The PersistentPodStates that are for a workload.
    fn targeting(&self, namespace: &str, workload: &Workload) -> Vec<Arc<CachedPodState>> {
        let key = target_key(namespace, workload);
        self.states.snapshot().by_index(&POD_STATES_BY_TARGET, &key)
    }

    fn of_workload<T>(
        &self,
        kind: (&str, &str),
        delta: &Delta<T>,
        view: impl Fn(&T) -> WorkloadView,
    ) -> BTreeSet<ObjectKey> {
        keys::of_workload(kind, delta, view, &|namespace, workload| {
            self.targeting(namespace, workload)
        })
    }

    /// The workloads of listed kinds that control pods of a namespace, or of all if it is empty, with their namespaces.
    fn owners(&self, namespace: &str, allowed: &[AllowedKind]) -> BTreeSet<(Box<str>, Workload)> {
        if allowed.is_empty() {
            return BTreeSet::new();
        }
        let snapshot = self.pods.snapshot();
        let pods = if namespace.is_empty() {
            snapshot.iter().cloned().collect()
        } else {
            snapshot.list(namespace)
        };
        let owned = pods.iter().filter_map(|pod| {
            let workload = Workload::from(pod.controller.as_deref()?);
            keys::is_allowed(allowed, &workload).then(|| (pod.namespace.clone(), workload))
        });
        owned.collect()
    }

    /// The keys of a namespace that workloads without a cache may concern.
    fn keys_in(&self, namespace: &str) -> BTreeSet<ObjectKey> {
        let states = self.states.snapshot().list(namespace);
        let states = states.iter().map(|state| ObjectKey::of(&**state));
        let owners = self.owners(namespace, &self.allowed());
        let owners = owners.into_iter();
        states
            .chain(owners.map(|(namespace, owner)| ObjectKey::new(&*namespace, owner.name.as_str())))
            .collect()
    }
}

impl Reconciler for PersistentPodStates {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let cached = self.states.snapshot().get(key);
        let state = match cached.as_ref().map(|cached| &cached.object) {
            Some(Ok(state)) => Some(&**state),
            Some(Err(error)) => return Outcome::Plan(Box::new(invalid_spec::plan(error))),
            None => None,
        };
        let (allowed, namespace) = (self.allowed(), &*key.namespace);
        let owners = self.owners(namespace, &allowed).into_iter();
        let owners = owners.filter(|(_, owner)| *owner.name == *key.name);
        let inputs = Inputs {
            key,
            state,
            known: &self.workloads.source(namespace),
            allowed: &allowed,
            start_ordinal: self.start_ordinal,
            pods_of: &|uid| self.pods.snapshot().by_index(&PODS_BY_OWNER, uid),
            owners: owners.map(|(_, owner)| owner).collect(),
            nodes: &CachedNodes(&self.nodes),
            other: &|workload| {
                let targeting = self.targeting(namespace, workload);
                let mut others = targeting.iter().map(|state| &state.metadata);
                let other =
                    others.find(|other| other.name != *key.name && other.deletion_timestamp.is_none());
                other.map(|other| other.name.clone())
            },
        };
        match inputs.plan(memory, Explain::No, now) {
            Some(plan) => Outcome::Plan(Box::new(plan)),
            None => Outcome::Gone,
        }
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let mut keys: BTreeSet<ObjectKey> = self
            .states
            .snapshot()
            .iter()
            .map(|state| ObjectKey::of(&**state))
            .collect();
        let native = self.stateful_sets.snapshot();
        let native = native.iter().filter(|set| !set.annotations.is_empty());
        keys.extend(native.map(|set| ObjectKey::of(&**set)));
        let advanced = self.advanced.snapshot();
        let annotated = advanced
            .iter()
            .filter(|set| !StatefulSetWorkload::view(set).annotations.is_empty());
        keys.extend(annotated.map(|set| ObjectKey::of(&**set)));
        let owners = self.owners("", &self.allowed()).into_iter();
        keys.extend(owners.map(|(namespace, owner)| ObjectKey::new(&*namespace, owner.name.as_str())));
        keys.into_iter().collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let state = self.states.snapshot().get(key)?;
        let api_version = self
            .served
            .api_version(kruise_api::persistentpodstate::RESOURCE)
            .ok()?;
        Some(ObjectRef::of(&*state, api_version, KIND.kind))
    }
}
