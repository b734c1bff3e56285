//! Budgets as reviews see them, and the charges that reviews make.

mod charges;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kruise_admission::lookup::{LookupResult, ObjectName};
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::ResourceId;
use kruise_runtime::{Served, caches::Caches};
use kube_cache::{ObjectKey, SharedInformer, Version};

use crate::{
    controllers::{caches::BUDGETS, parsed::Parsed},
    lookup::Cached,
};

pub(crate) use charges::{Charges, NotStored, Review};

/// A budget, or why it cannot be read.
pub(crate) type Read = Result<Arc<PodUnavailableBudget>, String>;

/// The budgets as this replica knows them: those of the cache, or newer ones that it has written. Cloning shares them.
#[derive(Clone)]
pub struct Budgets {
    /// The cache. It stays empty if budgets are not served.
    pub cache: SharedInformer<Parsed<PodUnavailableBudget>>,
    is_served: bool,
    /// What this replica knows and the cache does not show yet.
    newer: Arc<Mutex<BTreeMap<ObjectName, Arc<PodUnavailableBudget>>>>,
}

impl Budgets {
    /// Declares the cache.
    pub fn new(caches: &mut Caches, served: &Served) -> Self {
        let is_served = served.version(ResourceId::POD_UNAVAILABLE_BUDGETS).is_some();
        Self {
            cache: caches.informer_if(is_served, &BUDGETS),
            is_served,
            newer: Arc::default(),
        }
    }

    /// Does the cluster serve budgets?
    pub fn are_served(&self) -> bool {
        self.is_served
    }

    /// The result of a lookup of a budget. One that is not cached may be newer than the cache.
    pub(crate) fn get(&self, name: &ObjectName) -> Cached {
        if !self.is_served {
            return Cached::Found(LookupResult::NotFound);
        }
        let found = self.known(name).map(LookupResult::Budget);
        found.map_or(Cached::Absent, Cached::Found)
    }

    /// The result of a lookup of all budgets of a namespace. One that cannot be read covers nothing.
    pub(crate) fn of_namespace(&self, namespace: &str) -> Cached {
        if self.is_served && self.cache.synced_version().is_none() {
            return Cached::Absent;
        }
        let budgets = self.cache.snapshot().list(namespace);
        let budgets = budgets.iter().filter_map(|budget| budget.object.as_ref().ok());
        let budgets = budgets.map(|budget| Arc::new(budget.clone())).collect();
        Cached::Found(LookupResult::Budgets(budgets))
    }

    /// The newest version that this replica knows; `None` if it knows none.
    fn known(&self, name: &ObjectName) -> Option<Read> {
        let (cached, observed) = {
            let snapshot = self.cache.snapshot();
            let key = ObjectKey::new(name.namespace.as_str(), name.name.as_str());
            (snapshot.get(&key), snapshot.observed())
        };
        let mut newer = self.newer();
        if newer.get(name).is_some_and(|one| is_seen(one, observed)) {
            newer.remove(name);
        }
        match newer.get(name) {
            Some(newer) => Some(Ok(newer.clone())),
            None => cached.map(|cached| cached.object.clone().map(Arc::new)),
        }
    }

    /// Notes a version that the cache may not show yet.
    fn note(&self, name: &ObjectName, budget: &Arc<PodUnavailableBudget>) {
        let observed = self.cache.observed();
        let mut newer = self.newer();
        newer.retain(|_, one| !is_seen(one, observed));
        if !is_seen(budget, observed) {
            newer.insert(name.clone(), budget.clone());
        }
    }

    fn forget(&self, name: &ObjectName) {
        self.newer().remove(name);
    }

    fn newer(&self) -> MutexGuard<'_, BTreeMap<ObjectName, Arc<PodUnavailableBudget>>> {
        self.newer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is the cache as new as this version? A version that cannot be compared is never kept beside the cache.
fn is_seen(budget: &PodUnavailableBudget, observed: Option<Version>) -> bool {
    match budget.metadata.resource_version.parse::<Version>() {
        Ok(version) => observed.is_some_and(|observed| observed >= version),
        Err(_) => true,
    }
}
