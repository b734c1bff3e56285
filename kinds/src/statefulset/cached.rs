//! The caches of StatefulSets and of the storage classes of claims, indexes by the names that StatefulSets give,
//! and how they are found as workloads of pods.

use kruise_api::{
    names::APPS_GROUP,
    statefulset::{KIND, RESOURCE, StatefulSet},
};
use kruise_frame::{
    caches::{CLAIMS, PODS},
    workloads::CachedWorkload,
};
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::{CacheId, Reach};
use kruise_views::{ClaimView, Numbering, PodView, StorageClassView, WorkloadView};
use kube_cache::Index;

use super::by_name::{set_of_pod, sets_of_claim};
use kruise_runtime::parsed::Parsed;

/// StatefulSets of `apps.kruise.io` in the served version.
pub const STATEFULSETS: CacheId<Parsed<StatefulSet>> =
    CacheId::of("statefulsets", RESOURCE).before(&[PODS.name, CLAIMS.name]);

/// Storage classes.
pub(super) const CLASSES: CacheId<StorageClassView> =
    CacheId::of("storageclasses", ResourceId::STORAGE_CLASSES).reach(Reach::Cluster);

/// Claims by namespace and names of the StatefulSets that they may be for by their own name, as [`in_namespace`]
/// joins them.
pub(super) const CLAIMS_BY_SET_NAME: Index<ClaimView> = Index::new("statefulset", |claim| {
    let sets = sets_of_claim(&claim.name);
    sets.map(|(_, set)| in_namespace(&claim.namespace, set)).collect()
});
/// Pods by namespace and name of the StatefulSet that they are for by their own name, whosever they are, as
/// [`in_namespace`] joins them.
pub(super) const PODS_BY_SET_NAME: Index<PodView> = Index::new("statefulset", |pod| {
    let set = set_of_pod(&pod.name);
    set.map(|set| in_namespace(&pod.namespace, set))
        .into_iter()
        .collect()
});

/// Key of an index by namespace and name.
pub(super) fn in_namespace(namespace: &str, name: &str) -> Box<str> {
    format!("{namespace}/{name}").into()
}

/// StatefulSets as workloads of pods.
pub struct StatefulSetWorkload;

impl CachedWorkload for StatefulSetWorkload {
    type Object = Parsed<StatefulSet>;

    const CACHE: CacheId<Self::Object> = STATEFULSETS;
    const GROUP_KIND: (&'static str, &'static str) = (APPS_GROUP, KIND.kind);

    /// One that cannot be parsed does not say how many pods it wants.
    fn view(found: &Self::Object) -> WorkloadView {
        let spec = found.object.as_ref().ok().map(|set| &set.spec);
        let scale = spec.map(|spec| (spec.replicas.unwrap_or(1), spec.selector.clone()));
        let (replicas, selector) = scale.unzip();
        let numbering =
            spec.and_then(|spec| Numbering::new(spec.ordinals.start, spec.reserve_ordinals.clone()));
        WorkloadView::new(&found.metadata, replicas, selector).numbered(numbering)
    }
}
