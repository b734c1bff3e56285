//! The cache of WorkloadSpreads, and the caches and indexes that only their controller reads.

use std::sync::Arc;

use kruise_api::workloadspread::{RESOURCE, WorkloadSpread};
use kruise_frame::caches::PODS;
use kruise_plan_kit::{ResourceId, workloads::Workload};
use kruise_runtime::caches::CacheId;
use kruise_runtime::parsed::Parsed;
use kruise_views::WorkloadView;
use kube_cache::Index;

/// WorkloadSpreads in the served version, which webhooks read, too. Those of a namespace are a range of the cache.
/// Their pods are listed later, so that a pod that was counted and is missing there is gone.
pub const SPREADS: CacheId<Parsed<Arc<WorkloadSpread>>> =
    CacheId::of("workloadspreads", RESOURCE).before(&[PODS.name]);

/// A WorkloadSpread in a cache.
pub type CachedSpread = Parsed<Arc<WorkloadSpread>>;

/// WorkloadSpreads by their target: [`target_key`].
pub const SPREADS_BY_TARGET: Index<CachedSpread> = Index::new("target", |cached| {
    let spread = cached.object.as_ref().ok();
    let target = spread.and_then(|spread| target_of(spread));
    let key = target.map(|target| target_key(&cached.metadata.namespace, &target));
    key.into_iter().map(Into::into).collect()
});

/// ReplicaSets by the uid of their controlling owner.
pub const REPLICA_SETS_BY_OWNER: Index<WorkloadView> = Index::new("owner", |set| {
    set.controller.iter().map(|owner| owner.uid.clone()).collect()
});

/// Jobs of `batch`, whose pods are listed later.
pub const JOBS: CacheId<WorkloadView> = CacheId::of("jobs of spreads", ResourceId::JOBS).before(&[PODS.name]);

/// The workload that a WorkloadSpread is for.
pub fn target_of(spread: &WorkloadSpread) -> Option<Workload> {
    let target = spread.spec.target_ref.as_ref()?;
    Some(Workload::new(target.group(), &target.kind, &target.name))
}

/// Key of the WorkloadSpreads that are for this workload.
pub fn target_key(namespace: &str, target: &Workload) -> String {
    let Workload { group, kind, name } = target;
    format!("{namespace}/{group}/{kind}/{name}")
}
