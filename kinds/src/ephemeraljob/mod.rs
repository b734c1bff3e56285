//! EphemeralJob: the registration of its controller, the caches that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`].

mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kruise_api::definition::Kind;
use kruise_api::ephemeraljob::{EphemeralJob, KIND};
use kruise_frame::{
    caches::PODS,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Explain, Plan, ResourceId, events};
use kruise_runtime::parsed::Parsed;
use kruise_runtime::{
    Served,
    caches::CacheId,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::PodView;
use kube_cache::SharedInformer;

pub use inputs::Inputs;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<EphemeralJobs>("ephemeraljob-controller", 10)
    .reconciles_unflagged(&KIND)
    .reviewed(&kruise_admission::kinds::ephemeraljob::WEBHOOKS)
    .emits(&[
        kruise_plan_workloads::ephemeraljob::reasons::ALL,
        &[&events::DEADLINE_EXCEEDED],
    ])
    .watching(&[ResourceId::PODS])
    .granted(&[
        // `patch` for the finalizer that OpenKruise sets.
        Grant::on(kruise_api::ephemeraljob::RESOURCE, &["delete", "patch"]),
        Grant::on(ResourceId::PODS, &["patch"]).part("ephemeralcontainers"),
    ])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);

const OVERDUE: Spec = Spec::overdue_writes("ephemeraljob_expectation_leakage");

/// EphemeralJobs. Those of a namespace are a range of the cache.
const EPHEMERAL_JOBS: CacheId<Parsed<EphemeralJob>> =
    CacheId::of("ephemeraljobs", kruise_api::ephemeraljob::RESOURCE).before(&[PODS.name]);

/// Reconciles one EphemeralJob from the caches.
pub struct EphemeralJobs {
    jobs: SharedInformer<Parsed<EphemeralJob>>,
    pods: SharedInformer<PodView>,
    served: Arc<Served>,
}

impl Controls for EphemeralJobs {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            jobs: setup.cache(&EPHEMERAL_JOBS),
            pods: setup.cache(&PODS),
            served: setup.parts.served.clone(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&EPHEMERAL_JOBS);
        wiring.maps(&PODS, |this, delta| {
            keys::of_pod(delta, &|namespace| this.jobs.snapshot().list(namespace))
        });
    }
}

impl KindReconciler for EphemeralJobs {
    type Object = EphemeralJob;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<Parsed<EphemeralJob>> {
        &self.jobs
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, job: &Self::Object, round: Round<'_>) -> Option<Plan> {
        let inputs = Inputs::new(job, self.pods.snapshot().list(&round.key.namespace));
        Some(inputs.plan(job, round.api_version, round.memory, Explain::No, round.now))
    }
}
