//! The caches of one controller, as its reconcile loop reads them.

use std::sync::Arc;

use kruise_plan_kit::{ResourceId, Target};
use kube_cache::{ObjectKey, Version};

use super::entry::Entry;

/// The caches of one controller.
pub trait CacheView: Send + Sync + 'static {
    /// Cached resources that the controller writes in addition to its own kind, in the order in which their current
    /// versions are read from the server.
    fn written(&self) -> &[ResourceId];

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
    written: Vec<ResourceId>,
}

impl View {
    pub(super) fn new(entries: Vec<Arc<dyn Entry>>, written: &[ResourceId]) -> Self {
        let is_cached = |resource: &&ResourceId| entries.iter().any(|entry| entry.resource() == **resource);
        let written = written.iter().filter(is_cached).copied().collect();
        Self { entries, written }
    }

    fn of(&self, resource: ResourceId) -> Option<&Arc<dyn Entry>> {
        self.entries.iter().find(|entry| entry.resource() == resource)
    }
}

impl CacheView for View {
    fn written(&self) -> &[ResourceId] {
        &self.written
    }

    fn observed(&self, resource: ResourceId) -> Option<Version> {
        self.of(resource)?.observed()
    }

    fn present(&self, resource: ResourceId, uid: &str) -> bool {
        self.of(resource).is_some_and(|entry| entry.present(uid))
    }

    fn version(&self, target: &Target, uid: &str) -> Option<Version> {
        let key = ObjectKey::new(&*target.namespace, &*target.name);
        self.of(target.resource)?.version(&key, uid)
    }
}
