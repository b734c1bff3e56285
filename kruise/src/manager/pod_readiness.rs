//! Pod readiness: every pod is its own key.

use jiff::Timestamp;
use kruise_plan_kit::{EventNote, Memory, ResourceId, Target};
use kruise_plan_workloads::pod_readiness;
use kruise_runtime::worker::{Outcome, Planner};
use kube_cache::{ObjectKey, Version};

use super::caches::Caches;

/// Name in metrics, logs and user agent.
pub const NAME: &str = "pod-readiness-controller";
/// Pods side by side; upstream has no flag for it either.
pub const WORKERS: usize = 3;

/// Plans one pod from the cache.
pub struct PodReadiness {
    /// What is seen.
    pub caches: Caches,
}

impl Planner for PodReadiness {
    type Key = ObjectKey;

    fn plan(&self, key: &ObjectKey, _memory: &Memory, now: Timestamp) -> Outcome {
        match self.caches.pods.snapshot().get(key) {
            Some(pod) if pod_readiness::concerns(&pod) => {
                Outcome::Plan(Box::new(pod_readiness::plan(&pod, now)))
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
        let concerned = pods.iter().filter(|pod| pod_readiness::concerns(pod));
        concerned.map(|pod| ObjectKey::of(&**pod)).collect()
    }

    fn overdue(&self, _key: &ObjectKey) {}

    fn emit(&self, _key: &ObjectKey, _note: EventNote) {}
}
