//! Pod readiness: the condition of the `KruisePodReady` readiness gate. The keys are pods with the gate.

use jiff::Timestamp;
use kruise_frame::{
    caches::PODS,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Memory, ResourceId};
use kruise_plan_workloads::pod_readiness;
use kruise_runtime::{
    events::ObjectRef,
    worker::{Outcome, Reconciler},
};
use kruise_views::PodView;
use kube_cache::{ObjectKey, SharedInformer};

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<PodReadiness>("pod-readiness-controller", 3)
    .granted(&[Grant::on(ResourceId::PODS, &["patch"]).part("status")]);

/// Reconciles one pod from the cache.
pub struct PodReadiness {
    pods: SharedInformer<PodView>,
}

impl Controls for PodReadiness {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            pods: setup.cache(&PODS),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        // The old pod counts, too: a last reconcile clears the memory of a key that does not apply any more.
        wiring.maps(&PODS, |_, delta| {
            let mut either = delta.new.iter().chain(&delta.old);
            let concerned = either.find(|pod| pod_readiness::concerns(pod));
            concerned.map(|pod| ObjectKey::of(&**pod))
        });
    }
}

impl Reconciler for PodReadiness {
    fn reconcile(&self, key: &ObjectKey, _memory: &Memory, now: Timestamp) -> Outcome {
        match self.pods.snapshot().get(key) {
            Some(pod) if pod_readiness::concerns(&pod) => {
                Outcome::Plan(Box::new(pod_readiness::plan(&pod, now)))
            }
            // Until the pod changes there is nothing to do, and nothing to remember.
            _ => Outcome::Gone,
        }
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let pods = self.pods.snapshot();
        let concerned = pods.iter().filter(|pod| pod_readiness::concerns(pod));
        concerned.map(|pod| ObjectKey::of(&**pod)).collect()
    }

    /// It emits no events.
    fn about(&self, _key: &ObjectKey) -> Option<ObjectRef> {
        None
    }
}
