//! The input of a plan of a ResourceDistribution, read from the caches or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::resourcedistribution::ResourceDistribution;
use kruise_plan_distribution::resourcedistribution::{Copies, Snapshot, plan};
use kruise_plan_kit::{Explain, Memory, Plan, ResourceId};
use kruise_views::{MetadataView, NamespaceView};
use kube_cache::{ObjectKey, SharedInformer};

/// The namespaces of the cluster, and the objects in them.
pub struct Inputs<'a> {
    /// All namespaces.
    pub namespaces: Vec<Arc<NamespaceView>>,
    /// Secrets and ConfigMaps.
    pub copies: &'a (dyn Copies + Sync),
}

impl Inputs<'_> {
    /// Plans the ResourceDistribution.
    pub fn plan(
        &self,
        distribution: &ResourceDistribution,
        api_version: &str,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            distribution,
            api_version,
            namespaces: &self.namespaces,
            copies: self.copies,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}

/// The caches of Secrets and ConfigMaps.
pub(super) struct CachedCopies {
    pub(super) secrets: SharedInformer<MetadataView>,
    pub(super) config_maps: SharedInformer<MetadataView>,
}

impl Copies for CachedCopies {
    fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<Arc<MetadataView>> {
        let cache = match resource {
            ResourceId::SECRETS => &self.secrets,
            ResourceId::CONFIG_MAPS => &self.config_maps,
            _ => return None,
        };
        cache.snapshot().get(&ObjectKey::new(namespace, name))
    }
}
