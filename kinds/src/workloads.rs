//! The workloads of Kubernetes that own pods, and all kinds of workloads that have a cache.

use kruise_frame::workloads::{CachedWorkload, WorkloadKind};
use kruise_plan_kit::{ResourceId, workloads::Workload};
use kruise_runtime::caches::CacheId;
use kruise_views::WorkloadView;

use crate::ALL;

/// Deployments.
pub const DEPLOYMENTS: CacheId<WorkloadView> = CacheId::of("deployments", ResourceId::DEPLOYMENTS);
/// ReplicaSets.
pub const REPLICA_SETS: CacheId<WorkloadView> = CacheId::of("replicasets", ResourceId::REPLICA_SETS);
/// StatefulSets of `apps`.
pub const APPS_STATEFULSETS: CacheId<WorkloadView> =
    CacheId::of("statefulsets of apps", ResourceId::APPS_STATEFULSETS);
macro_rules! built_in {
    ($($name:ident: $cache:ident, $kind:literal;)*) => {$(
        struct $name;

        impl CachedWorkload for $name {
            type Object = WorkloadView;

            const CACHE: CacheId<Self::Object> = $cache;
            const GROUP_KIND: (&'static str, &'static str) = ("apps", $kind);

            fn view(found: &Self::Object) -> WorkloadView {
                found.clone()
            }
        }
    )*};
}

built_in!(
    Deployment: DEPLOYMENTS, "Deployment";
    ReplicaSet: REPLICA_SETS, "ReplicaSet";
    StatefulSet: APPS_STATEFULSETS, "StatefulSet";
);

/// All kinds of workloads that have a cache.
pub fn cached() -> Vec<WorkloadKind> {
    let built_in = [
        WorkloadKind::of::<Deployment>(),
        WorkloadKind::of::<ReplicaSet>(),
        WorkloadKind::of::<StatefulSet>(),
    ];
    let ours = ALL.iter().filter_map(|registration| registration.workload);
    built_in.into_iter().chain(ours).collect()
}

/// The workload of this name, if the resource is that of a kind with a cache.
pub fn workload_of(resource: ResourceId, name: &str) -> Option<Workload> {
    let kind = cached().into_iter().find(|kind| kind.resource == resource)?;
    let (group, kind) = kind.group_kind;
    Some(Workload::new(group, kind, name))
}
