//! The cache of the storage classes of claims, and indexes by the names that StatefulSets give.

use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::{CacheId, Reach};
use kruise_views::{ClaimView, PodView, StorageClassView};
use kube_cache::Index;

use super::by_name::{set_of_pod, sets_of_claim};

/// Storage classes.
pub(super) const CLASSES: CacheId<StorageClassView> =
    CacheId::of("storageclasses", ResourceId::STORAGE_CLASSES).reach(Reach::Cluster);

/// Claims by namespace and names of the StatefulSets that they may be for by their own name, as [`in_namespace`] joins them.
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
