//! StatefulSet: the registration of its controller, the caches that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`].

mod by_name;
pub mod cached;
mod explain;
mod inputs;
mod keys;
mod options;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kruise_api::definition::Kind;
use kruise_api::statefulset::{KIND, StatefulSet};
use kruise_frame::{
    caches::{CLAIMS, PODS, REVISIONS, owners},
    leader::LeaderSettings,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Plan, ResourceId, events};
use kruise_plan_workloads::statefulset::{Explain, Options};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{ClaimView, ImageJobView, PodView, RevisionView, StorageClassView};
use kube_cache::{ObjectKey, SharedInformer};

use super::budgets::{self, CachedBudgets, PODS_BY_BUDGET};

pub use inputs::Inputs;
pub use options::options;
use options::{IMAGES_AHEAD, RESIZE_CLAIMS};

use crate::imagepulljob::cached::PULL_JOBS;
use crate::podunavailablebudget::cached::BUDGETS;
use crate::statefulset::cached::STATEFULSETS;
use cached::{CLAIMS_BY_SET_NAME, CLASSES, PODS_BY_SET_NAME};
use kruise_runtime::parsed::Parsed;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<StatefulSets>("statefulset-controller", 3)
    .reconciles(&KIND, "statefulset-workers", "StatefulSets handled side by side")
    .reviewed(&kruise_admission::kinds::statefulset::WEBHOOKS)
    .owns_pods::<cached::StatefulSetWorkload>()
    .emits(&[
        kruise_plan_workloads::statefulset::reasons::ALL,
        events::OF_CHILDREN,
        kruise_plan_kit::rollout::REASONS,
        &[&events::FAILED_UPDATE],
    ])
    .granted(&[
        super::TEMPLATES,
        Grant::on(ResourceId::PODS, &["create", "patch", "delete"]),
        Grant::on(ResourceId::PODS, &["patch"]).part("status"),
        Grant::on(ResourceId::PODS, &["patch"]).part("resize"),
        // Their owners delete them. Who changes the owners must have the right, too, where the server checks that.
        Grant::on(ResourceId::CLAIMS, &["create", "patch", "delete"]),
        Grant::on(ResourceId::REVISIONS, &["create", "patch", "delete"]),
        Grant::on(ResourceId::STORAGE_CLASSES, &[])
            .cluster_scoped()
            .with(&[RESIZE_CLAIMS]),
        budgets::READ,
        budgets::CHARGE,
        Grant::on(kruise_api::imagepulljob::RESOURCE, &["create", "delete"]).with(&[IMAGES_AHEAD]),
    ])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);

const OVERDUE: Spec = Spec::overdue_writes("statefulset_expectation_leakage");

/// Reconciles one StatefulSet from the caches.
pub struct StatefulSets {
    sets: SharedInformer<Parsed<StatefulSet>>,
    revisions: SharedInformer<RevisionView>,
    claims: SharedInformer<ClaimView>,
    classes: SharedInformer<StorageClassView>,
    pull_jobs: SharedInformer<ImageJobView>,
    pods: SharedInformer<PodView>,
    budgets: CachedBudgets,
    served: Arc<Served>,
    options: Options,
}

impl Controls for StatefulSets {
    fn new(setup: &mut Setup<'_>) -> Self {
        let settings = LeaderSettings::of(setup.parts.config);
        Self {
            sets: setup.cache(&STATEFULSETS),
            revisions: setup.cache(&REVISIONS),
            claims: setup.indexed(&CLAIMS, &[CLAIMS_BY_SET_NAME]),
            classes: setup.cache_with(RESIZE_CLAIMS, &CLASSES),
            pull_jobs: setup.cache_with(IMAGES_AHEAD, &PULL_JOBS),
            pods: setup.indexed(&PODS, &[PODS_BY_SET_NAME, PODS_BY_BUDGET]),
            budgets: CachedBudgets::new(setup),
            served: setup.parts.served.clone(),
            options: options(&settings, setup.parts.server, setup.parts.served),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&STATEFULSETS);
        wiring.maps(&PODS, |this, delta| keys::of_pod(delta, &|key| this.find(key)));
        wiring.maps(&CLAIMS, |this, delta| {
            keys::of_claim(delta, &|key| this.find(key))
        });
        wiring.maps(&CLASSES, |this, delta| keys::of_class(delta, &this.all()));
        wiring.maps(&PULL_JOBS, |_, delta| owners(&KIND, delta));
        wiring.maps(&BUDGETS, |this, delta| budgets::owners(&KIND, delta, &this.pods));
        wiring.maps(&REVISIONS, |_, delta| owners(&KIND, delta));
    }
}

impl StatefulSets {
    fn find(&self, key: &ObjectKey) -> Option<Arc<Parsed<StatefulSet>>> {
        self.sets.snapshot().get(key)
    }

    fn all(&self) -> Vec<Arc<Parsed<StatefulSet>>> {
        self.sets.snapshot().iter().cloned().collect()
    }
}

impl KindReconciler for StatefulSets {
    type Object = StatefulSet;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<Parsed<StatefulSet>> {
        &self.sets
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, set: &Self::Object, round: Round<'_>) -> Option<Plan> {
        Some(self.read_inputs(set).plan(
            set,
            round.api_version,
            self.options,
            round.memory,
            Explain::No,
            round.now,
        ))
    }
}
