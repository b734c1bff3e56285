//! Caches that several controllers read, and the mapping from objects to the keys of their owners.
//!
//! A cache or an index that only one controller reads is declared beside that controller.

use std::sync::Arc;

use kruise_api::{
    cloneset::CloneSet,
    containerrecreaterequest::ContainerRecreateRequest,
    definition::Kind,
    meta::{LabelSelector, ObjectMeta},
    persistentpodstate::PersistentPodState,
    podunavailablebudget::PodUnavailableBudget,
    statefulset::StatefulSet,
    workloadspread::WorkloadSpread,
};
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::{CacheId, Reach};
use kruise_views::{
    ClaimView, ImageJobView, NamespaceView, NodeView, OwnerView, PodView, RevisionView, ScheduledJobView,
    SubsetView, WorkloadView,
};
use kube_cache::{Cached, Delta, Index, ObjectKey};

use super::parsed::Parsed;

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
/// Jobs that pull images, by the uid of their controlling owner.
pub const PULL_JOBS_BY_OWNER: Index<ImageJobView> = Index::new("owner", |job| {
    job.controller.iter().map(|owner| owner.uid.clone()).collect()
});
/// Jobs that pull images.
pub const PULL_JOBS: CacheId<ImageJobView> =
    CacheId::of("imagepulljobs", ResourceId::IMAGE_PULL_JOBS).indexed(&[PULL_JOBS_BY_OWNER]);
/// Revisions of workloads.
pub const REVISIONS: CacheId<RevisionView> = CacheId::of("controllerrevisions", ResourceId::REVISIONS);
/// Nodes.
pub const NODES: CacheId<NodeView> = CacheId::of("nodes", ResourceId::NODES)
    .reach(Reach::Cluster)
    .streamed();
/// Namespaces.
pub const NAMESPACES: CacheId<NamespaceView> =
    CacheId::of("namespaces", ResourceId::NAMESPACES).reach(Reach::Cluster);

/// Deployments.
pub const DEPLOYMENTS: CacheId<WorkloadView> = CacheId::of("deployments", ResourceId::DEPLOYMENTS);
/// ReplicaSets.
pub const REPLICA_SETS: CacheId<WorkloadView> = CacheId::of("replicasets", ResourceId::REPLICA_SETS);
/// StatefulSets of `apps`.
pub const APPS_STATEFULSETS: CacheId<WorkloadView> =
    CacheId::of("statefulsets of apps", ResourceId::APPS_STATEFULSETS);
/// CloneSets in the served version.
pub const CLONESETS: CacheId<Parsed<CloneSet>> =
    CacheId::of("clonesets", ResourceId::CLONESETS).before(&[PODS.name]);
/// StatefulSets of `apps.kruise.io` in the served version.
pub const STATEFULSETS: CacheId<Parsed<StatefulSet>> =
    CacheId::of("statefulsets", ResourceId::STATEFULSETS).before(&[PODS.name, CLAIMS.name]);
/// PodUnavailableBudgets in the served version. Those of a namespace are a range of the cache (`Snapshot::list`). Webhooks and
/// plans of workloads read them, too.
pub const BUDGETS: CacheId<Parsed<PodUnavailableBudget>> =
    CacheId::of("podunavailablebudgets", ResourceId::POD_UNAVAILABLE_BUDGETS).before(&[PODS.name]);

/// PersistentPodStates in the served version, which webhooks read, too. Their pods, and the workloads that they are for, are
/// listed later, so that a workload that is missing there is gone.
pub const POD_STATES: CacheId<Parsed<Arc<PersistentPodState>>> =
    CacheId::of("persistentpodstates", ResourceId::PERSISTENT_POD_STATES).before(&[
        PODS.name,
        APPS_STATEFULSETS.name,
        STATEFULSETS.name,
    ]);

/// A ContainerRecreateRequest in a cache.
pub type CachedRequest = Parsed<ContainerRecreateRequest>;
/// ContainerRecreateRequests. They are listed before the pods that they name.
pub const REQUESTS: CacheId<CachedRequest> = CacheId::of(
    "containerrecreaterequests",
    ResourceId::CONTAINER_RECREATE_REQUESTS,
)
.before(&[PODS.name]);

/// WorkloadSpreads in the served version, which webhooks read, too. Those of a namespace are a range of the cache. Their pods are
/// listed later, so that a pod that was counted and is missing there is gone.
pub const SPREADS: CacheId<Parsed<Arc<WorkloadSpread>>> =
    CacheId::of("workloadspreads", ResourceId::WORKLOAD_SPREADS).before(&[PODS.name]);

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
