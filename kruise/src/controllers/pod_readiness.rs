//! Pod readiness: every pod that has the `KruisePodReady` gate is its own key.

use jiff::Timestamp;
use kruise_plan_kit::{Memory, ResourceId};
use kruise_plan_workloads::pod_readiness;
use kruise_runtime::{
    events::ObjectRef,
    worker::{Outcome, Reconciler},
};
use kruise_views::PodView;
use kube_cache::{ObjectKey, SharedInformer};

use super::caches::PODS;
use crate::manager::{Controls, Grant, Registration, Setup, Wiring};

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<PodReadiness>("pod-readiness-controller", 3)
    .granted(&[Grant::on(ResourceId::PODS, &["patch"]).part("status")]);

/// Plans one pod from the cache.
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
        // A pod that was concerned and is no more is forgotten at its last reconcile.
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
            // Nothing to do, now or until the pod changes: nothing to remember either.
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
