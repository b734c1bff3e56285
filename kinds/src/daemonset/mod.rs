//! DaemonSet: the registration of its controller, the caches that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`].

mod cached;
mod explain;
#[cfg(test)]
mod heartbeats;
mod inputs;
mod keys;
mod options;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use go_compat::flags::Kind as Type;
use kruise_api::daemonset::{DaemonSet, KIND};
use kruise_api::definition::Kind;
use kruise_frame::{
    caches::{NODES, PODS, REVISIONS, owners},
    flags::flag,
    leader::LeaderSettings,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Plan, ResourceId, events};
use kruise_plan_workloads::daemonset::{Explain, Options};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{ImageJobView, NodeView, PodView, RevisionView};
use kube_cache::SharedInformer;

use super::{
    budgets::{self, CachedBudgets, PODS_BY_BUDGET},
    fits::Fits,
    placing::Placing,
};

pub use inputs::Inputs;
use options::IMAGES_AHEAD;
pub use options::options;

use crate::imagepulljob::cached::PULL_JOBS;
use crate::podunavailablebudget::cached::BUDGETS;
use cached::{DAEMONSETS, ORPHANS};
use kruise_runtime::parsed::Parsed;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<DaemonSets>("daemonset-controller", 3)
    .reconciles(&KIND, "daemonset-workers", "DaemonSets handled side by side")
    .reviewed(&kruise_admission::kinds::daemonset::WEBHOOKS)
    .emits(&[
        kruise_plan_workloads::daemonset::reasons::ALL,
        events::OF_CHILDREN,
        kruise_plan_kit::rollout::REASONS,
    ])
    .flagged(&[flag(
        BY_SCHEDULER,
        Type::Bool,
        "true",
        "the scheduler binds pods of DaemonSets to their nodes; otherwise they are created bound",
    )])
    .watching(&[ResourceId::NODES])
    .granted(&[
        super::TEMPLATES,
        Grant::on(ResourceId::PODS, &["create", "patch", "delete"]),
        Grant::on(ResourceId::PODS, &["patch"]).part("status"),
        Grant::on(ResourceId::PODS, &["patch"]).part("resize"),
        Grant::on(ResourceId::REVISIONS, &["create", "patch", "delete"]),
        budgets::READ,
        budgets::CHARGE,
        Grant::on(kruise_api::imagepulljob::RESOURCE, &["create", "delete"]).with(&[IMAGES_AHEAD]),
    ])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);

/// Flag: the scheduler binds pods.
const BY_SCHEDULER: &str = "assign-pods-by-scheduler";
const OVERDUE: Spec = Spec::overdue_writes("daemonset_expectation_leakage");

/// Reconciles one DaemonSet from the caches.
pub struct DaemonSets {
    sets: SharedInformer<Parsed<Placing<DaemonSet>>>,
    revisions: SharedInformer<RevisionView>,
    nodes: SharedInformer<NodeView>,
    pull_jobs: SharedInformer<ImageJobView>,
    pods: SharedInformer<PodView>,
    budgets: CachedBudgets,
    /// Which nodes fit which sets, found out once for each node and placement.
    fits: Fits,
    served: Arc<Served>,
    options: Options,
}

impl Controls for DaemonSets {
    fn new(setup: &mut Setup<'_>) -> Self {
        let config = setup.parts.config;
        let settings = LeaderSettings::of(config);
        Self {
            sets: setup.cache(&DAEMONSETS),
            revisions: setup.cache(&REVISIONS),
            nodes: setup.cache(&NODES),
            pull_jobs: setup.cache_with(IMAGES_AHEAD, &PULL_JOBS),
            pods: setup.indexed(&PODS, &[ORPHANS, PODS_BY_BUDGET]),
            budgets: CachedBudgets::new(setup),
            fits: Fits::default(),
            served: setup.parts.served.clone(),
            options: Options {
                by_scheduler: config.bool_flag(BY_SCHEDULER),
                ..options(&settings, setup.parts.server, setup.parts.served)
            },
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&DAEMONSETS);
        wiring.maps(&PODS, |this, delta| {
            keys::of_pod(delta, &|namespace| this.sets.snapshot().list(namespace))
        });
        wiring.maps(&NODES, |this, delta| keys::of_node(delta, &|| this.all()));
        wiring.maps(&PULL_JOBS, |_, delta| owners(&KIND, delta));
        wiring.maps(&BUDGETS, |this, delta| budgets::owners(&KIND, delta, &this.pods));
        wiring.maps(&REVISIONS, |_, delta| owners(&KIND, delta));
    }
}

impl DaemonSets {
    fn all(&self) -> Vec<Arc<Parsed<Placing<DaemonSet>>>> {
        self.sets.snapshot().iter().cloned().collect()
    }
}

impl KindReconciler for DaemonSets {
    type Object = Placing<DaemonSet>;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<Parsed<Placing<DaemonSet>>> {
        &self.sets
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, placing: &Self::Object, round: Round<'_>) -> Option<Plan> {
        Some(self.read_inputs(placing).plan(
            &placing.object,
            round.api_version,
            self.options,
            round.memory,
            Explain::No,
            round.now,
        ))
    }
}
