//! The order in which containers start: every pod is its own key, and has at most one barrier.

use jiff::Timestamp;
use kruise_plan_kit::{EventNote, Memory, ResourceId, Target};
use kruise_plan_workloads::launch::{self, Observed};
use kruise_runtime::{
    events::{EventSink, ObjectRef},
    worker::{Outcome, Planner},
};
use kruise_views::{BarrierView, PodView};
use kube_cache::{Cached, Delta, ObjectKey, Version};

use super::caches::Caches;

/// Name in metrics, logs, user agent and events.
pub const NAME: &str = "container-launch-priority-controller";
/// Pods side by side; upstream has no flag for it either.
pub const WORKERS: usize = 4;

/// Plans one pod from the caches.
pub struct Launches {
    /// What is seen.
    pub caches: Caches,
    /// Where events go.
    pub events: EventSink,
}

impl Planner for Launches {
    type Key = ObjectKey;

    fn plan(&self, key: &ObjectKey, memory: &Memory, _now: Timestamp) -> Outcome {
        let pods = self.caches.pods.snapshot();
        let (pod, seen) = (pods.get(key), pods.observed());
        drop(pods);
        match pod {
            Some(pod) if launch::concerns(&pod) => {
                let name = launch::barrier_of(&pod.name);
                let barriers = self.caches.barriers.snapshot();
                let barrier = barriers.get(&ObjectKey::new(&*pod.namespace, name));
                Outcome::Plan(Box::new(launch::plan(Observed {
                    pod: &pod,
                    barrier: barrier.as_deref(),
                    seen: seen.map(Version::get),
                    memory,
                })))
            }
            // Nothing to do, now or until the pod changes: nothing to remember either.
            _ => Outcome::Gone,
        }
    }

    fn observed(&self, resource: ResourceId) -> Option<Version> {
        self.caches.observed(resource)
    }

    fn present(&self, resource: ResourceId, uid: &str) -> bool {
        self.caches.present(resource, uid)
    }

    fn version(&self, target: &Target, uid: &str) -> Option<Version> {
        self.caches.version(target, uid)
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let pods = self.caches.pods.snapshot();
        let concerned = pods.iter().filter(|pod| launch::concerns(pod));
        concerned.map(|pod| ObjectKey::of(&**pod)).collect()
    }

    fn overdue(&self, _key: &ObjectKey) {}

    fn emit(&self, key: &ObjectKey, note: EventNote) {
        let Some(pod) = self.caches.pods.snapshot().get(key) else {
            return;
        };
        let about = ObjectRef {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: pod.namespace.to_string(),
            name: pod.name.to_string(),
            uid: pod.uid.to_string(),
            resource_version: pod.resource_version.to_string(),
        };
        self.events.emit(about, note);
    }
}

/// The pod, if its change may concern us. One that was concerned and is no more is forgotten at its last look.
pub fn of_pod(delta: &Delta<PodView>) -> Option<ObjectKey> {
    let mut either = delta.new.iter().chain(&delta.old);
    either
        .find(|pod| launch::concerns(pod))
        .map(|pod| ObjectKey::of(&**pod))
}

/// The pod that a barrier is for.
pub fn of_barrier(delta: &Delta<BarrierView>) -> Option<ObjectKey> {
    let barrier = delta.latest()?;
    let pod = launch::pod_of(barrier.name())?;
    Some(ObjectKey::new(barrier.namespace(), pod))
}
