//! The objects of a kind as this replica knows them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kruise_admission::lookup::{Decoded, LookupResult, ObjectName};
use kruise_frame::lookup::Cached;
use kruise_runtime::{Served, caches::Caches};
use kube_cache::{ObjectKey, SharedInformer, Version};

use super::Charged;

/// The objects as this replica knows them: those of the cache, or newer ones that it has written. Cloning shares them.
#[derive(Clone)]
pub struct Newest<T: Charged> {
    /// The cache. It stays empty if the kind is not served.
    pub cache: SharedInformer<T::Cached>,
    is_served: bool,
    /// What this replica knows and the cache does not show yet.
    newer: Arc<Mutex<BTreeMap<ObjectName, Arc<T>>>>,
}

impl<T: Charged> Newest<T> {
    /// Declares the cache. A kind that is not `wanted` has no objects, as one that is not served.
    pub fn new(caches: &mut Caches, served: &Served, wanted: bool) -> Self {
        let is_served = wanted && served.version(T::RESOURCE).is_some();
        Self {
            cache: caches.informer_if(is_served, &T::CACHE),
            is_served,
            newer: Arc::default(),
        }
    }

    /// Does the cluster serve the kind, and is it wanted?
    pub fn are_served(&self) -> bool {
        self.is_served
    }

    /// The result of a lookup of one object. One that is not cached may be newer than the cache.
    pub fn get(&self, name: &ObjectName) -> Cached {
        if !self.is_served {
            return Cached::Found(LookupResult::NotFound);
        }
        let found = self.known(name).map(LookupResult::one::<T>);
        found.map_or(Cached::Absent, Cached::Found)
    }

    /// The result of a lookup of all objects of a namespace. One that cannot be read is left out.
    pub fn of_namespace(&self, namespace: &str) -> Cached {
        if self.is_served && self.cache.synced_version().is_none() {
            return Cached::Absent;
        }
        let all = self.cache.snapshot().list(namespace);
        let all = all.iter().filter_map(|cached| T::of_cached(cached).ok());
        Cached::Found(LookupResult::all::<T>(all.collect()))
    }

    /// All objects that can be read; `None` before the first list is complete.
    pub fn all(&self) -> Option<Vec<Arc<T>>> {
        if !self.is_served {
            return Some(Vec::new());
        }
        self.cache.synced_version()?;
        let snapshot = self.cache.snapshot();
        let all = snapshot.iter().filter_map(|cached| T::of_cached(cached).ok());
        Some(all.collect())
    }

    /// The newest version that this replica knows; `None` if it knows none.
    pub(super) fn known(&self, name: &ObjectName) -> Option<Decoded<T>> {
        let (cached, observed) = {
            let snapshot = self.cache.snapshot();
            let key = ObjectKey::new(name.namespace.as_str(), name.name.as_str());
            (snapshot.get(&key), snapshot.observed())
        };
        let mut newer = self.newer();
        if newer.get(name).is_some_and(|one| is_seen(&**one, observed)) {
            newer.remove(name);
        }
        match newer.get(name) {
            Some(newer) => Some(Ok(newer.clone())),
            None => cached.map(|cached| T::of_cached(&cached)),
        }
    }

    /// Notes a version that the cache may not show yet.
    pub(super) fn note(&self, name: &ObjectName, object: &Arc<T>) {
        let observed = self.cache.observed();
        let mut newer = self.newer();
        newer.retain(|_, one| !is_seen(&**one, observed));
        if !is_seen(&**object, observed) {
            newer.insert(name.clone(), object.clone());
        }
    }

    pub(super) fn forget(&self, name: &ObjectName) {
        self.newer().remove(name);
    }

    pub(super) fn newer(&self) -> MutexGuard<'_, BTreeMap<ObjectName, Arc<T>>> {
        self.newer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is the cache as new as this version? A version that cannot be compared is never kept beside the cache.
fn is_seen<T: Charged>(object: &T, observed: Option<Version>) -> bool {
    match object.metadata().resource_version.parse::<Version>() {
        Ok(version) => observed.is_some_and(|observed| observed >= version),
        Err(_) => true,
    }
}
