//! Caches that several controllers read, and the mapping from objects to the keys of their owners.
//!
//! The cache of a kind of ours is declared beside that kind (`cached`), as is an index that only one controller reads.

use std::sync::Arc;

use kruise_api::{
    definition::Kind,
    meta::{LabelSelector, ObjectMeta},
};
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::{CacheId, Reach};
use kruise_views::{
    ClaimView, ImageJobView, NamespaceView, NodeView, OwnerView, PodView, RevisionView, ScheduledJobView,
    SubsetView,
};
use kube_cache::{Cached, Delta, Index, ObjectKey};

/// Pods by the uid of their controlling owner.
pub const PODS_BY_OWNER: Index<PodView> = Index::new("owner", |pod| {
    pod.controller.iter().map(|owner| owner.uid.clone()).collect()
});
/// Claims by the uid of their controlling owner.
pub const CLAIMS_BY_OWNER: Index<ClaimView> = Index::new("owner", |claim| {
    claim.controller.iter().map(|owner| owner.uid.clone()).collect()
});

/// Pods. Their first list is at least as new as those of their owners ([`CacheId::before`]).
pub const PODS: CacheId<PodView> = CacheId::of("pods", ResourceId::PODS)
    .indexed(&[PODS_BY_OWNER])
    .streamed();
/// Claims. The first list of pods is at least as new, so that no claim of an existing pod counts as unused.
pub const CLAIMS: CacheId<ClaimView> = CacheId::of("persistentvolumeclaims", ResourceId::CLAIMS)
    .indexed(&[CLAIMS_BY_OWNER])
    .before(&[PODS.name]);
/// Revisions of workloads.
pub const REVISIONS: CacheId<RevisionView> = CacheId::of("controllerrevisions", ResourceId::REVISIONS);
/// Nodes.
pub const NODES: CacheId<NodeView> = CacheId::of("nodes", ResourceId::NODES)
    .reach(Reach::Cluster)
    .streamed();
/// Namespaces.
pub const NAMESPACES: CacheId<NamespaceView> =
    CacheId::of("namespaces", ResourceId::NAMESPACES).reach(Reach::Cluster);

/// An object that may have a controlling owner.
pub trait Owned: Cached {
    /// The controlling owner.
    fn controller(&self) -> Option<&OwnerView>;
}

macro_rules! owned {
    ($($view:ty),*) => {$(
        impl Owned for $view {
            fn controller(&self) -> Option<&OwnerView> {
                self.controller.as_deref()
            }
        }
    )*};
}

owned!(
    PodView,
    ClaimView,
    ImageJobView,
    RevisionView,
    ScheduledJobView,
    SubsetView
);

/// Of these revisions, those that the workload controls, and those without a controller that its selector matches.
pub fn revisions_of(
    workload: &ObjectMeta,
    selector: &LabelSelector,
    mut revisions: Vec<Arc<RevisionView>>,
) -> Vec<Arc<RevisionView>> {
    revisions.retain(|revision| match revision.owner_uid() {
        Some(uid) => uid == workload.uid,
        None => selector.matches_by(|key| revision.labels.get(key)),
    });
    revisions
}

/// Keys of the controlling owners of this kind, before and after a change.
pub fn owners<T: Owned>(kind: &Kind, delta: &Delta<T>) -> impl Iterator<Item = ObjectKey> + use<T> {
    let key = |object: &Arc<T>| {
        let owner = object.controller()?;
        let is_kind = *owner.kind == *kind.kind && *owner.group == *kind.group;
        is_kind.then(|| ObjectKey::new(object.namespace(), owner.name.clone()))
    };
    let (old, new) = (delta.old.as_ref().and_then(key), delta.new.as_ref().and_then(key));
    let previous = if old == new { None } else { old };
    new.into_iter().chain(previous)
}
