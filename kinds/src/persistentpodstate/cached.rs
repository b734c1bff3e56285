//! Indexes that only this controller reads.

use std::sync::Arc;

use kruise_api::persistentpodstate::PersistentPodState;
use kruise_frame::parsed::Parsed;
use kruise_plan_kit::workloads::Workload;
use kube_cache::Index;

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
