//! EphemeralJob: the registration of its controller, the caches that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`].

mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::ephemeraljob::{EphemeralJob, KIND};
use kruise_frame::{
    caches::PODS,
    invalid_spec,
    parsed::Parsed,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Explain, Memory, ResourceId, events};
use kruise_runtime::{
    Served,
    caches::CacheId,
    events::ObjectRef,
    metrics::objects::Spec,
    worker::{Outcome, Reconciler},
};
use kruise_views::PodView;
use kube_cache::{ObjectKey, SharedInformer};

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

impl Reconciler for EphemeralJobs {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let cached = self.jobs.snapshot().get(key);
        let (Some(cached), Ok(api_version)) = (
            cached,
            self.served.api_version(kruise_api::ephemeraljob::RESOURCE),
        ) else {
            return Outcome::Gone;
        };
        let plan = match &cached.object {
            Ok(job) => {
                let inputs = Inputs::new(job, self.pods.snapshot().list(&key.namespace));
                inputs.plan(job, &api_version, memory, Explain::No, now)
            }
            Err(error) => invalid_spec::plan(error),
        };
        Outcome::Plan(Box::new(plan))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let jobs = self.jobs.snapshot();
        jobs.iter().map(|job| ObjectKey::of(&**job)).collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let job = self.jobs.snapshot().get(key)?;
        let api_version = self.served.api_version(kruise_api::ephemeraljob::RESOURCE).ok()?;
        Some(ObjectRef::of(&*job, api_version, KIND.kind))
    }
}
