//! SidecarSet: the registration of its controller, and the caches that it watches.
//!
//! The input of a plan is [`Inputs`]. Beside them, the reconciler keeps the locks of pods that several SidecarSets
//! write, and the repairs that were tried.

mod cached;
mod explain;
mod inputs;
mod keys;
mod reconcile;
mod uninjected;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use kruise_api::sidecarset::KIND;
use kruise_frame::{
    caches::{NAMESPACES, PODS},
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::ResourceId;
use kruise_plan_kit::events;
use kruise_plan_sidecars::{Repairs, WriteLocks};
use kruise_runtime::{
    Served,
    metrics::objects::{Form, Series, Spec},
};
use kruise_views::{NamespaceView, PodView};
use kube_cache::{ObjectKey, SharedInformer};

use super::budgets::{self, CachedBudgets, PODS_BY_BUDGET};

pub use cached::{CachedRevision, CachedSidecarSet, SET_REVISIONS, SIDECARSETS};
pub use inputs::{Inputs, Parameters};
pub use keys::injected;

use crate::podunavailablebudget::cached::BUDGETS;
use cached::PODS_BY_SIDECARSET;
use uninjected::Uninjected;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<SidecarSets>("sidecarset-controller", 3)
    .reconciles(&KIND, "sidecarset-workers", "SidecarSets handled side by side")
    .reviewed(&kruise_admission::kinds::sidecarset::WEBHOOKS)
    .emits(&[kruise_plan_sidecars::reasons::ALL, &[&events::CONTAINER_REPLACED]])
    .watching(&[ResourceId::NAMESPACES])
    .granted(&[
        // A SidecarSet is in no namespace.
        super::TEMPLATES.in_own_namespace(),
        Grant::on(ResourceId::PODS, &["patch", "delete"]),
        Grant::on(ResourceId::PODS, &["patch"]).part("status"),
        budgets::READ,
        budgets::CHARGE,
        Grant::on(ResourceId::REVISIONS, &["create", "patch", "delete"]).in_own_namespace(),
    ])
    .measured(&OVERDUE, &[&UNINJECTED])
    .explained(explain::explain);

const OVERDUE: Spec = Spec::overdue_writes("sidecarset_expectation_leakage");

const UNINJECTED: Spec = Spec {
    name: "kruise_sidecarset_uninjected_pods",
    help: "Pods that a SidecarSet is for and that were made without its sidecars",
    labels: &["sidecarset"],
    form: Form::Gauge,
};

/// Reconciles one SidecarSet from the caches.
pub struct SidecarSets {
    sets: SharedInformer<CachedSidecarSet>,
    namespaces: SharedInformer<NamespaceView>,
    revisions: SharedInformer<CachedRevision>,
    pods: SharedInformer<PodView>,
    budgets: CachedBudgets,
    served: Arc<Served>,
    /// Namespace of the manager, where revisions are.
    namespace: String,
    /// Number of uninjected pods by SidecarSet.
    uninjected_metric: Series,
    /// Candidates for uninjected pods.
    uninjected: Uninjected,
    /// Write locks of pods that several SidecarSets are injected into.
    write_locks: Mutex<WriteLocks>,
    /// Whether the pod webhook is on. Without it no pod counts as uninjected.
    injects: bool,
    /// Repairs that were tried, by SidecarSet, with its uid.
    repairs: Mutex<BTreeMap<ObjectKey, (String, Repairs)>>,
}

impl Controls for SidecarSets {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            sets: setup.cache(&SIDECARSETS),
            namespaces: setup.cache(&NAMESPACES),
            revisions: setup.cache(&SET_REVISIONS),
            pods: setup.indexed(&PODS, &[PODS_BY_SIDECARSET, PODS_BY_BUDGET]),
            budgets: CachedBudgets::new(setup),
            served: setup.parts.served.clone(),
            namespace: setup.parts.config.webhook.namespace.clone(),
            uninjected_metric: setup.parts.metrics.objects(&UNINJECTED),
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
            injected.into_iter().chain(this.uninjected.update(delta))
        });
        wiring.maps(&BUDGETS, |this, delta| {
            budgets::of_pods(delta, &this.pods, |pod| {
                keys::injected(pod).map(|name| ObjectKey::new("", name)).collect()
            })
        });
        wiring.maps(&NAMESPACES, |this, delta| {
            keys::of_namespace(delta, &this.sets.snapshot().list(""))
        });
        wiring.maps(&SET_REVISIONS, |_, delta| {
            delta
                .latest()
                .and_then(|revision| keys::of_revision(&revision.view))
        });
    }
}

#[cfg(test)]
mod tests;
