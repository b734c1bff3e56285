//! The caches of one controller, as its reconcile loop reads them.

use std::sync::Arc;

use kruise_plan_kit::{ResourceId, Target};
use kube_cache::{ObjectKey, Version};

use super::entry::Entry;

/// The caches of one controller.
pub trait CacheView: Send + Sync + 'static {
    /// Newest version that the cache of a resource has observed; `None` without a synced cache.
    fn observed(&self, resource: ResourceId) -> Option<Version>;

    /// Whether an object with this uid is cached and not terminating.
    fn present(&self, resource: ResourceId, uid: &str) -> bool;

    /// Version of the object with this uid in its cache.
    fn version(&self, target: &Target, uid: &str) -> Option<Version>;
}

/// A subset of the registry.
pub struct View {
    entries: Vec<Arc<dyn Entry>>,
}

impl View {
    pub(super) fn new(entries: Vec<Arc<dyn Entry>>) -> Self {
        Self { entries }
    }

    /// The caches of a resource: a controller may read several, in other places or forms.
    fn of(&self, resource: ResourceId) -> impl Iterator<Item = &Arc<dyn Entry>> {
        self.entries
            .iter()
            .filter(move |entry| entry.resource() == resource)
    }
}

impl CacheView for View {
    fn observed(&self, resource: ResourceId) -> Option<Version> {
        let observed = self.of(resource).map(|entry| entry.observed());
        observed.min().flatten()
    }

    fn present(&self, resource: ResourceId, uid: &str) -> bool {
        self.of(resource).any(|entry| entry.present(uid))
    }

    fn version(&self, target: &Target, uid: &str) -> Option<Version> {
        let key = ObjectKey::new(&*target.namespace, &*target.name);
        let versions = self.of(target.resource).map(|entry| entry.version(&key, uid));
        versions.max().flatten()
    }
}
