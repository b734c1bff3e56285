//! The cache of DaemonSets, and the index of the pods that they may adopt.

use std::sync::Arc;

use kruise_api::daemonset::DaemonSet;
use kruise_plan_kit::{ResourceId, fit::Placement};
use kruise_plan_workloads::daemonset::placement;
use kruise_runtime::caches::CacheId;
use kruise_views::PodView;
use kube_cache::Index;
use serde_json::Value;

use crate::controllers::{
    caches::PODS,
    parsed::{Parse, Parsed},
};

/// DaemonSets in the served version.
pub(super) const DAEMONSETS: CacheId<Parsed<Placing>> =
    CacheId::of("daemonsets", ResourceId::DAEMONSETS).before(&[PODS.name]);

/// Pods without a controller, by namespace.
pub(super) const ORPHANS: Index<PodView> = Index::new("orphans", |pod| match pod.controller {
    None => vec![pod.namespace.clone()],
    Some(_) => Vec::new(),
});

/// A DaemonSet, and what it says about nodes: read once, and not for each change of a node.
#[derive(Clone, Debug)]
pub struct Placing {
    pub(super) set: DaemonSet,
    pub(super) placement: Arc<Placement>,
}

impl Parse for DaemonSet {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

impl Parse for Placing {
    fn parse(object: Value) -> Result<Self, String> {
        let set = DaemonSet::from_value(object)?;
        let placement = Arc::new(placement(&set));
        Ok(Self { set, placement })
    }
}
