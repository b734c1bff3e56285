//! SidecarSet: its registration, what it watches, how sets that share pods lock them, and what is remembered of
//! repairs. What a plan is made from is in [`World`].

mod cached;
mod keys;
mod uninjected;
mod world;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::FutureExt;
use jiff::Timestamp;
use kruise_api::sidecarset::{KIND, SidecarSet};
use kruise_plan_kit::{EventNote, Memory, Plan, ResourceId, events};
use kruise_plan_sidecars::{Explain, Repairs, WriteLocks, learn, plan, uninjected as missing};
use kruise_runtime::{
    Served,
    events::ObjectRef,
    metrics::objects::{Form, Series, Spec},
    worker::{Outcome, Reconciler},
};
use kruise_views::PodView;
use kube_cache::{ObjectKey, SharedInformer};

use super::{
    caches::{NAMESPACES, PODS},
    lookups::Lookups,
};
use crate::explain;
use crate::manager::{Controls, Grant, Registration, Setup, Wiring};

pub use cached::{CachedRevision, CachedSidecarSet, SET_REVISIONS, SIDECARSETS};
pub use keys::injected;
pub use world::{Look, World};

use uninjected::Uninjected;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<SidecarSets>("sidecarset-controller", 3)
    .reconciles(&KIND, "sidecarset-workers", "SidecarSets handled side by side")
    .watching(&[ResourceId::NAMESPACES])
    .granted(&[
        Grant::on(ResourceId::PODS, &["patch", "delete"]),
        Grant::on(ResourceId::PODS, &["patch"]).part("status"),
        Grant::on(ResourceId::REVISIONS, &["create", "patch", "delete"]),
    ])
    .measured(&OVERDUE, &[&MISSED])
    .explained(explain::sidecarset::explain);

const OVERDUE: Spec = Spec {
    name: "sidecarset_expectation_leakage",
    help: "Writes not seen in time",
    labels: &["namespace", "name"],
    form: Form::Counter,
};

const MISSED: Spec = Spec {
    name: "kruise_sidecarset_uninjected_pods",
    help: "Pods that a SidecarSet is for and that were made without its sidecars",
    labels: &["sidecarset"],
    form: Form::Gauge,
};

/// Plans one SidecarSet from the caches.
pub struct SidecarSets {
    /// Sets, namespaces and revisions, which webhooks read, too.
    lookups: Lookups,
    pods: SharedInformer<PodView>,
    served: Arc<Served>,
    /// Where revisions are kept.
    namespace: String,
    /// Numbers of pods without their sidecars.
    missed: Series,
    /// Pods that sets may have missed.
    uninjected: Uninjected,
    /// Whose turn it is to write which pod.
    write_locks: Mutex<WriteLocks>,
    /// Are sidecars injected at all? Where they are not, no pod is missed.
    injects: bool,
    /// What was tried for pods without sidecars, by set; and the uid of the set that tried it.
    repairs: Mutex<BTreeMap<ObjectKey, (String, Repairs)>>,
}

impl Controls for SidecarSets {
    fn new(setup: &mut Setup<'_>) -> Self {
        setup.cache(&SIDECARSETS);
        setup.cache(&NAMESPACES);
        setup.cache(&SET_REVISIONS);
        let lookups = setup.parts.lookups.clone();
        setup.while_leading(Box::new(move |stop| lookups.clone().keep_condition(stop).boxed()));
        Self {
            lookups: setup.parts.lookups.clone(),
            pods: setup.cache(&PODS),
            served: setup.parts.served.clone(),
            namespace: setup.parts.config.webhook.namespace.clone(),
            missed: setup.parts.metrics.objects(&MISSED),
            uninjected: Uninjected::default(),
            write_locks: Mutex::default(),
            injects: setup.parts.config.gates.on("PodWebhook"),
            repairs: Mutex::default(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&SIDECARSETS);
        wiring.maps(&PODS, |this, delta| {
            let injected = keys::of_pod(delta);
            injected.into_iter().chain(this.uninjected.follow(delta))
        });
        wiring.maps(&NAMESPACES, |this, delta| {
            keys::of_namespace(delta, &this.lookups.sets.snapshot().list(""))
        });
        wiring.maps(&SET_REVISIONS, |_, delta| {
            delta
                .latest()
                .and_then(|revision| keys::of_revision(&revision.view))
        });
    }
}

impl Reconciler for SidecarSets {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let cached = self.lookups.sets.snapshot().get(key);
        let (Some(cached), Ok(api_version)) = (cached, self.served.api_version(ResourceId::SIDECARSETS))
        else {
            self.forget(key);
            return Outcome::Gone;
        };
        let set = match SidecarSet::from_json(&cached.set.object) {
            Ok(set) => set,
            Err(error) => {
                // Which pods it is for is not known.
                self.missed.forget(&[&key.name]);
                self.write_locks().release(&key.name);
                let note = EventNote {
                    reason: &events::INVALID_SPEC,
                    message: format!("the specification cannot be read: {error}"),
                };
                return Outcome::Plan(Box::new(Plan {
                    events: vec![note],
                    ..Plan::default()
                }));
            }
        };
        let mut world = self.observe(&cached, &set);
        if !self.injects {
            world.not_injected.clear();
        }
        let uid = &set.metadata.uid;
        let tried = self.repairs().get(key).filter(|(of, _)| of == uid).cloned();
        let tried = tried.map(|(_, repairs)| repairs).unwrap_or_default();
        let look = Look {
            set: &set,
            api_version: &api_version,
            namespace: &self.namespace,
            memory,
            repairs: &tried,
            explain: Explain::No,
        };
        let mut repairs = tried.clone();
        let plan = world.look(&look, |observed| {
            let mut plan = plan(observed, now);
            self.write_locks().lock(&set.metadata.name, &mut plan);
            learn(&mut repairs, observed, &plan, now);
            let missed = missing(observed);
            self.missed.set(&[&set.metadata.name], missed);
            plan
        });
        self.repairs().insert(key.clone(), (uid.clone(), repairs));
        Outcome::Plan(Box::new(plan))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let sets = self.lookups.sets.snapshot();
        sets.iter().map(|set| ObjectKey::of(&**set)).collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let set = self.lookups.sets.snapshot().get(key)?;
        let api_version = self.served.api_version(ResourceId::SIDECARSETS).ok()?;
        Some(ObjectRef::of(&*set, api_version, KIND.kind))
    }
}

impl SidecarSets {
    fn repairs(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (String, Repairs)>> {
        self.repairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_locks(&self) -> MutexGuard<'_, WriteLocks> {
        self.write_locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, key: &ObjectKey) {
        self.write_locks().release(&key.name);
        self.repairs().remove(key);
        self.uninjected.forget(&key.name);
        self.missed.forget(&[&key.name]);
    }
}

#[cfg(test)]
mod tests;
