//! The cache of PersistentPodStates, and indexes that only their controller reads.

use std::sync::Arc;

use kruise_api::persistentpodstate::{PersistentPodState, RESOURCE};
use kruise_frame::caches::PODS;
use kruise_plan_kit::workloads::Workload;
use kruise_runtime::caches::CacheId;
use kube_cache::Index;

use crate::{statefulset::cached::STATEFULSETS, workloads::APPS_STATEFULSETS};
use kruise_runtime::parsed::Parsed;

/// PersistentPodStates in the served version, which webhooks read, too. Their pods, and the workloads that they are
/// for, are listed later, so that a workload that is missing there is gone.
pub const POD_STATES: CacheId<Parsed<Arc<PersistentPodState>>> = CacheId::of("persistentpodstates", RESOURCE)
    .before(&[PODS.name, APPS_STATEFULSETS.name, STATEFULSETS.name]);

/// A PersistentPodState in a cache.
pub type CachedPodState = Parsed<Arc<PersistentPodState>>;

/// PersistentPodStates by their target: [`target_key`].
pub const POD_STATES_BY_TARGET: Index<CachedPodState> = Index::new("target", |cached| {
    let state = cached.object.as_ref().ok();
    let key = state.map(|state| target_key(&state.metadata.namespace, &target_of(state)));
    key.into_iter().map(Into::into).collect()
});

/// The workload that a PersistentPodState is for.
pub fn target_of(state: &PersistentPodState) -> Workload {
    let target = &state.spec.target_ref;
    Workload::new(target.group(), &target.kind, &target.name)
}

/// Key of the PersistentPodStates that are for this workload.
pub fn target_key(namespace: &str, target: &Workload) -> String {
    let Workload { group, kind, name } = target;
    format!("{namespace}/{group}/{kind}/{name}")
}
