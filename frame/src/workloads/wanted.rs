//! Whether anybody wants a pod, for reviews: as the caches know, and as the API server says.

use std::collections::BTreeMap;

use kruise_admission::lookup::Belief;
use kruise_plan_kit::workloads::{Aspect, Known, Ownership, Wanted, Workload, wanted};
use kruise_runtime::ApiError;
use tokio::time::Instant;

use super::{Reader, Workloads};

impl Workloads {
    /// Does anybody want a pod to run, as far as the caches are believed? `None` if its owners have to be read.
    pub fn cached_wanted(&self, namespace: &str, pod: &Ownership, belief: Belief) -> Option<Wanted> {
        let known = |workload: &Workload, aspect: Aspect| match (self.cached(namespace, workload), aspect) {
            // What is not there may be newer than the cache.
            (Some(Known::Found(found)), Aspect::Live) if belief == Belief::Scale => Known::Found(found),
            (None, _) if belief == Belief::Uncached => Known::Unreadable,
            (Some(_), Aspect::Live) | (None, _) => Known::NotYet,
            (Some(found), _) => found,
        };
        Some(wanted(pod, &known)).filter(|wanted| !matches!(wanted, Wanted::NotYet(..)))
    }
}

impl Reader {
    /// Does anybody want a pod to run? All its owners are read, up to the first that is gone or has none; so is the
    /// Deployment of a ReplicaSet that is gone.
    ///
    /// # Errors
    /// If the server does not answer, or answers that it failed.
    pub async fn wanted(&self, namespace: &str, pod: &Ownership) -> Result<Wanted, ApiError> {
        let asked = Instant::now();
        if self.unwanted.holds(&pod.controller.uid, asked) {
            return Ok(Wanted::No);
        }
        let mut read: BTreeMap<Workload, Known> = BTreeMap::new();
        loop {
            let known = |workload: &Workload, _: Aspect| read.get(workload).cloned().unwrap_or(Known::NotYet);
            match wanted(pod, &known) {
                Wanted::NotYet(workload, _) => {
                    let found = self.read(namespace, &workload, Aspect::Scale).await?;
                    read.insert(workload, found);
                }
                Wanted::No => {
                    self.unwanted.add(&pod.controller.uid, asked);
                    return Ok(Wanted::No);
                }
                wanted @ Wanted::Yes(_) => return Ok(wanted),
            }
        }
    }
}
