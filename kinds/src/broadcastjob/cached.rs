//! The cache of BroadcastJobs, and the index of their pods by node.

use kruise_api::broadcastjob::{BroadcastJob, KIND};
use kruise_frame::caches::PODS;
use kruise_plan_kit::fit::Placement;
use kruise_plan_workloads::broadcastjob::placement;
use kruise_runtime::caches::CacheId;
use kruise_views::PodView;
use kube_cache::Index;

use crate::placing::{OnNodes, Placing};
use kruise_runtime::parsed::Parsed;

/// BroadcastJobs in the served version.
pub(super) const BROADCAST_JOBS: CacheId<Parsed<Placing<BroadcastJob>>> =
    CacheId::of("broadcastjobs", kruise_api::broadcastjob::RESOURCE).before(&[PODS.name]);

/// Pods of BroadcastJobs, by the node that they are for.
pub(super) const PODS_BY_NODE: Index<PodView> = Index::new("broadcastjob node", |pod| {
    let is_ours = |pod: &&PodView| {
        let owner = pod.controller.as_deref();
        owner.is_some_and(|owner| *owner.kind == *KIND.kind && *owner.group == *KIND.group)
    };
    let pod = Some(pod).filter(is_ours);
    let node = pod.and_then(PodView::assigned_node);
    node.into_iter().map(Into::into).collect()
});

impl OnNodes for BroadcastJob {
    fn placement(&self) -> Placement {
        placement(self)
    }
}
