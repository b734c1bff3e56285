//! Container launch priority: the order in which the containers of a pod start.
//!
//! The keys are pods with an order. Each has at most one barrier, a ConfigMap that its containers wait for.

use jiff::Timestamp;
use kruise_api::names::LAUNCH_BARRIER_SELECTOR;
use kruise_frame::{
    caches::PODS,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Memory, ResourceId};
use kruise_plan_workloads::launch::{self, Snapshot};
use kruise_runtime::{
    caches::CacheId,
    events::ObjectRef,
    worker::{Outcome, Reconciler},
};
use kruise_views::{BarrierView, PodView};
use kube_cache::{Cached, ObjectKey, SharedInformer, Version};

/// The controller.
pub static REGISTRATION: Registration =
    Registration::of::<Launches>("container-launch-priority-controller", 4)
        .emits(&[kruise_plan_workloads::launch::reasons::ALL])
        .granted(&[
            Grant::on(ResourceId::PODS, &["patch"]),
            Grant::on(ResourceId::PODS, &["patch"]).part("status"),
            Grant::on(ResourceId::CONFIG_MAPS, &["create", "patch", "delete"]),
        ]);

/// Barriers of pods, and no other ConfigMaps.
const BARRIERS: CacheId<BarrierView> =
    CacheId::of("configmaps", ResourceId::CONFIG_MAPS).selected(LAUNCH_BARRIER_SELECTOR);

/// Reconciles one pod from the caches.
pub struct Launches {
    barriers: SharedInformer<BarrierView>,
    pods: SharedInformer<PodView>,
}

impl Controls for Launches {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            barriers: setup.cache(&BARRIERS),
            pods: setup.cache(&PODS),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        // The old pod counts, too: a last reconcile clears the memory of a key that does not apply any more.
        wiring.maps(&PODS, |_, delta| {
            let mut either = delta.new.iter().chain(&delta.old);
            let concerned = either.find(|pod| launch::concerns(pod));
            concerned.map(|pod| ObjectKey::of(&**pod))
        });
        wiring.maps(&BARRIERS, |_, delta| {
            let barrier = delta.latest()?;
            let pod = launch::pod_of(barrier.name())?;
            Some(ObjectKey::new(barrier.namespace(), pod))
        });
    }
}

impl Reconciler for Launches {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, _now: Timestamp) -> Outcome {
        let pods = self.pods.snapshot();
        let (pod, seen) = (pods.get(key), pods.observed());
        drop(pods);
        match pod {
            Some(pod) if launch::concerns(&pod) => {
                let name = launch::barrier_of(&pod.name);
                let barriers = self.barriers.snapshot();
                let barrier = barriers.get(&ObjectKey::new(&*pod.namespace, name));
                Outcome::Plan(Box::new(launch::plan(Snapshot {
                    pod: &pod,
                    barrier: barrier.as_deref(),
                    seen: seen.map(Version::get),
                    memory,
                })))
            }
            // Until the pod changes there is nothing to do, and nothing to remember.
            _ => Outcome::Gone,
        }
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let pods = self.pods.snapshot();
        let concerned = pods.iter().filter(|pod| launch::concerns(pod));
        concerned.map(|pod| ObjectKey::of(&**pod)).collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let pod = self.pods.snapshot().get(key)?;
        Some(ObjectRef::of(&*pod, "v1".into(), "Pod"))
    }
}
