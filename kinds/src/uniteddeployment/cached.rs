//! The caches of UnitedDeployments and of their workloads.
//!
//! Workloads and ReplicaSets carry the label of their subset, and only objects with that label are watched: a
//! cluster without UnitedDeployments sends none.

use kruise_api::uniteddeployment::{Child, UnitedDeployment};
use kruise_frame::caches::PODS;
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::CacheId;
use kruise_views::{MetadataView, SubsetView};
use kube_cache::Index;

use kruise_api::names::uniteddeployment::SUBSET_NAME;
use kruise_runtime::parsed::Parsed;

/// UnitedDeployments in the served version.
pub(super) const UNITED_DEPLOYMENTS: CacheId<Parsed<UnitedDeployment>> =
    CacheId::of("uniteddeployments", kruise_api::uniteddeployment::RESOURCE).before(&[
        STATEFUL_SETS.name,
        ADVANCED_STATEFUL_SETS.name,
        CLONE_SETS.name,
        DEPLOYMENTS.name,
        REPLICA_SETS.name,
        PODS.name,
    ]);

/// StatefulSets of `apps` with the label of a subset.
const STATEFUL_SETS: CacheId<SubsetView> =
    CacheId::of("statefulsets of apps, of subsets", ResourceId::APPS_STATEFULSETS).selected(SUBSET_NAME);
/// StatefulSets of `apps.kruise.io` with the label of a subset.
const ADVANCED_STATEFUL_SETS: CacheId<SubsetView> =
    CacheId::of("statefulsets of subsets", kruise_api::statefulset::RESOURCE).selected(SUBSET_NAME);
/// CloneSets with the label of a subset.
const CLONE_SETS: CacheId<SubsetView> =
    CacheId::of("clonesets of subsets", kruise_api::cloneset::RESOURCE).selected(SUBSET_NAME);
/// Deployments with the label of a subset.
const DEPLOYMENTS: CacheId<SubsetView> =
    CacheId::of("deployments of subsets", ResourceId::DEPLOYMENTS).selected(SUBSET_NAME);

/// The cache of a kind of workloads.
pub(super) const fn cache(child: Child) -> &'static CacheId<SubsetView> {
    match child {
        Child::StatefulSet => &STATEFUL_SETS,
        Child::AdvancedStatefulSet => &ADVANCED_STATEFUL_SETS,
        Child::CloneSet => &CLONE_SETS,
        Child::Deployment => &DEPLOYMENTS,
    }
}

/// ReplicaSets by the uid of their controlling owner.
pub(super) const REPLICA_SETS_BY_OWNER: Index<MetadataView> = Index::new("owner", |set| {
    set.controller.iter().map(|owner| owner.uid.clone()).collect()
});
/// Metadata of the ReplicaSets of Deployments of subsets.
pub(super) const REPLICA_SETS: CacheId<MetadataView> =
    CacheId::of("replicasets of subsets, metadata", ResourceId::REPLICA_SETS)
        .selected(SUBSET_NAME)
        .of_metadata()
        .indexed(&[REPLICA_SETS_BY_OWNER])
        .before(&[PODS.name]);
