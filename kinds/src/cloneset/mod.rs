//! CloneSet: the registration of its controller, the caches that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`].

pub mod cached;
mod explain;
mod inputs;
mod options;

use std::sync::Arc;

use go_compat::flags::Kind as Type;
use kruise_api::cloneset::{CloneSet, KIND};
use kruise_api::definition::Kind;
use kruise_frame::{
    caches::{CLAIMS, NODES, PODS, REVISIONS, owners},
    flags::flag,
    leader::{EXCLUDE_PREPARING_DELETE, LeaderSettings},
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Plan, ResourceId, events};
use kruise_plan_workloads::cloneset::{Explain, Options};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{ClaimView, ImageJobView, NodeView, PodView, RevisionView};
use kube_cache::SharedInformer;

use super::budgets::{self, CachedBudgets, PODS_BY_BUDGET};

use crate::cloneset::cached::CLONESETS;
use crate::imagepulljob::cached::PULL_JOBS;
use crate::podunavailablebudget::cached::BUDGETS;
pub use inputs::Inputs;
use kruise_runtime::parsed::Parsed;
use options::IMAGES_AHEAD;
pub use options::options;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<CloneSets>("cloneset-controller", 3)
    .reconciles(&KIND, "cloneset-workers", "CloneSets handled side by side")
    .reviewed(&kruise_admission::kinds::cloneset::WEBHOOKS)
    .owns_pods::<cached::CloneSetWorkload>()
    .emits(&[
        kruise_plan_workloads::cloneset::reasons::ALL,
        events::OF_CHILDREN,
        kruise_plan_kit::rollout::REASONS,
        &[&events::FAILED_UPDATE],
    ])
    .flagged(&[flag(
        EXCLUDE_PREPARING_DELETE,
        Type::Bool,
        "false",
        "pods held before deletion do not count as replicas, for all CloneSets",
    )])
    .watching(&[ResourceId::NODES])
    .granted(&[
        super::TEMPLATES,
        Grant::on(ResourceId::PODS, &["create", "patch", "delete"]),
        Grant::on(ResourceId::PODS, &["patch"]).part("status"),
        Grant::on(ResourceId::PODS, &["patch"]).part("resize"),
        Grant::on(ResourceId::CLAIMS, &["create", "patch", "delete"]),
        Grant::on(ResourceId::REVISIONS, &["create", "patch", "delete"]),
        // Consumed entries of `podsToDelete` are removed from the spec.
        Grant::on(kruise_api::cloneset::RESOURCE, &["patch"]),
        budgets::READ,
        budgets::CHARGE,
        Grant::on(kruise_api::imagepulljob::RESOURCE, &["create", "delete"]).with(&[IMAGES_AHEAD]),
    ])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);
const OVERDUE: Spec = Spec::overdue_writes("cloneset_scale_expectation_leakage");

/// Reconciles one CloneSet from the caches.
pub struct CloneSets {
    sets: SharedInformer<Parsed<CloneSet>>,
    revisions: SharedInformer<RevisionView>,
    nodes: SharedInformer<NodeView>,
    claims: SharedInformer<ClaimView>,
    pull_jobs: SharedInformer<ImageJobView>,
    pods: SharedInformer<PodView>,
    budgets: CachedBudgets,
    served: Arc<Served>,
    options: Options,
}

impl Controls for CloneSets {
    fn new(setup: &mut Setup<'_>) -> Self {
        let settings = LeaderSettings::of(setup.parts.config);
        Self {
            sets: setup.cache(&CLONESETS),
            revisions: setup.cache(&REVISIONS),
            nodes: setup.cache(&NODES),
            claims: setup.cache(&CLAIMS),
            pull_jobs: setup.cache_with(IMAGES_AHEAD, &PULL_JOBS),
            pods: setup.indexed(&PODS, &[PODS_BY_BUDGET]),
            budgets: CachedBudgets::new(setup),
            served: setup.parts.served.clone(),
            options: options(&settings, setup.parts.server, setup.parts.served),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&CLONESETS);
        wiring.maps(&PODS, |_, delta| owners(&KIND, delta));
        wiring.maps(&CLAIMS, |_, delta| owners(&KIND, delta));
        wiring.maps(&PULL_JOBS, |_, delta| owners(&KIND, delta));
        wiring.maps(&BUDGETS, |this, delta| budgets::owners(&KIND, delta, &this.pods));
        wiring.maps(&REVISIONS, |_, delta| owners(&KIND, delta));
    }
}

impl KindReconciler for CloneSets {
    type Object = CloneSet;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<Parsed<CloneSet>> {
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
