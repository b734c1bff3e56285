//! What users do to a WorkloadSpread, and to the pods of its subsets.

use std::sync::atomic::{AtomicBool, Ordering};

use super::oracles::truth;
use super::start::{Edit, SPREAD, SPREADS, Start, manifest, subset, subsets};
use crate::rules::prelude::*;

/// Does an update put a pod into a subset?
const ADOPTS: &str = r#"has(object.metadata.annotations)
    && "apps.kruise.io/matched-workloadspread" in object.metadata.annotations
    && !(has(oldObject.metadata.annotations)
        && "apps.kruise.io/matched-workloadspread" in oldObject.metadata.annotations)"#;
/// How often it is looked whether the pods are gone.
const LOOK: Duration = Duration::from_millis(500);
/// How long that may take.
const EMPTIED: Duration = Duration::from_mins(5);

/// Users of the WorkloadSpread of one scenario.
pub struct SpreadUser {
    /// The WorkloadSpread when it is created.
    pub start: Start,
    /// Is the workload emptied and filled again once all is calm?
    pub refills: bool,
    /// That was done.
    pub refilled: Arc<AtomicBool>,
}

impl Users for SpreadUser {
    type Edit = Edit;
    const HAS_TRIAL: bool = true;
    const REGISTERS: bool = true;

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        if self.start.refused {
            user::forbid_updates(cluster, PODS, ADOPTS).await;
        }
        if self.start.at_first {
            self.create_spread(cluster).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let path = SPREADS.one(SPREAD);
        match edit {
            Edit::Create => self.create_spread(cluster).await,
            Edit::Delete => user::delete(cluster, &path).await,
            Edit::Limits(limits) => {
                let patch = json!({"spec": {"subsets": subsets(limits)}});
                user::patch(cluster, &path, &patch).await
            }
            Edit::Empty(place, evicts) => empty(cluster, &subset(usize::from(*place)), *evicts).await,
        }
    }

    async fn probe(&self, cluster: &Arc<Cluster>) -> Option<Violation> {
        if !self.refills {
            return None;
        }
        self.refill(cluster).await
    }
}

impl SpreadUser {
    async fn create_spread(&self, cluster: &Arc<Cluster>) -> bool {
        user::create(cluster, &SPREADS.in_default(), &manifest(&self.start)).await
    }

    /// Takes all pods away and gives them back, so that they fill the subsets anew.
    async fn refill(&self, cluster: &Arc<Cluster>) -> Option<Violation> {
        let workload = self.start.workload;
        let path = workload.resource().one("web");
        let replicas = cluster.look(|state| truth::replicas(&state.mirror, workload));
        let scale = |replicas: i64| json!({"spec": {"replicas": replicas}});
        user::patch(cluster, &path, &scale(0)).await;
        let begun = Instant::now();
        let is_empty = || {
            cluster.look(|state| {
                let mut pods = state.mirror.of(PODS).now();
                !pods.any(|pod| pod.is_active() && truth::is_of(pod, &state.mirror, workload))
            })
        };
        while !is_empty() && begun.elapsed() < EMPTIED {
            sleep(LOOK).await;
        }
        never!(Violation::of, "convergence", !is_empty() => "pods are left of a workload of none");
        user::patch(cluster, &path, &scale(replicas)).await;
        self.refilled.store(true, Ordering::Relaxed);
        None
    }
}

/// Deletes or evicts the pods of a subset.
async fn empty(cluster: &Arc<Cluster>, subset: &str, evicts: bool) -> bool {
    let names: Vec<Arc<str>> = cluster.look(|state| {
        let pods = state.mirror.of(PODS).now();
        let in_it = pods.filter(|pod| pod.is_active() && truth::subset_of(pod).as_deref() == Some(subset));
        in_it.map(|pod| pod.name.clone()).collect()
    });
    let requests = names
        .iter()
        .map(|name| insist(cluster, user::removal(name, evicts)));
    // All at once: they share status writes.
    let accepted = futures::future::join_all(requests).await;
    accepted.contains(&true)
}
