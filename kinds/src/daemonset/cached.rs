//! The cache of DaemonSets, and the index of the pods that they may adopt.

use kruise_api::daemonset::DaemonSet;
use kruise_frame::caches::PODS;
use kruise_plan_kit::fit::Placement;
use kruise_plan_workloads::daemonset::placement;
use kruise_runtime::caches::CacheId;
use kruise_views::PodView;
use kube_cache::Index;

use crate::placing::{OnNodes, Placing};
use kruise_runtime::parsed::Parsed;

/// DaemonSets in the served version.
pub(super) const DAEMONSETS: CacheId<Parsed<Placing<DaemonSet>>> =
    CacheId::of("daemonsets", kruise_api::daemonset::RESOURCE).before(&[PODS.name]);

/// Pods without a controller, by namespace.
pub(super) const ORPHANS: Index<PodView> = Index::new("orphans", |pod| match pod.controller {
    None => vec![pod.namespace.clone()],
    Some(_) => Vec::new(),
});

impl OnNodes for DaemonSet {
    fn placement(&self) -> Placement {
        placement(self)
    }
}
