//! What a plan is made from.

use std::sync::Arc;

use kruise_api::resourcedistribution::ResourceDistribution;
use kruise_plan_kit::{Explain, Memory, ResourceId};
use kruise_views::{MetadataView, NamespaceView};

/// One snapshot of a ResourceDistribution, the namespaces and the objects in them.
pub struct Snapshot<'a> {
    /// The ResourceDistribution.
    pub distribution: &'a ResourceDistribution,
    /// `apiVersion` for references to it: that of the version on the wire.
    pub api_version: &'a str,
    /// All namespaces, in any order.
    pub namespaces: &'a [Arc<NamespaceView>],
    /// Secrets and ConfigMaps.
    pub copies: &'a dyn Copies,
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// Metadata of the Secrets and ConfigMaps of the cluster.
pub trait Copies {
    /// The object of this name.
    fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<Arc<MetadataView>>;
}
