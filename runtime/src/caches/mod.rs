//! The caches of a process: one watch for each resource and form, shared by everybody who reads it.
//!
//! # What it promises
//! - A cache exists because somebody asked for it, and is followed only if the cluster serves its resource. Two who ask
//!   for the same [`CacheId`] share one watch and one copy.
//! - A cache of owners names the caches of what they own in [`CacheId::before`]: the first lists of those are at least as
//!   new as its own, so that no owner is planned without objects that it already has.
//! - Every change reaches the handlers of a cache in the order in which they were registered.
//!
//! # What is not here
//! Kinds. Which caches there are is data of whoever asks.

mod entry;
mod view;

use std::{
    any::{Any, TypeId},
    sync::Arc,
    time::Duration,
};

use kruise_plan_kit::ResourceId;
use kruise_plan_kit::injected::{Bug, is_injected};
use kube_cache::{Cached, Delta, Index, SharedInformer, Version};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};

use crate::{Client, Served, freshness::Followed};
use entry::{Entry, Typed};

pub use view::{CacheView, View};

/// Time between two looks at whether a first list is in.
const STEP: Duration = Duration::from_millis(5);

/// What a cache holds, as data. Declared once as a constant, beside the type of its objects.
#[derive(Debug)]
pub struct CacheId<T: 'static> {
    /// Name in errors; unique for the type of its objects.
    pub name: &'static str,
    /// What is watched.
    pub resource: ResourceId,
    /// Where.
    pub reach: Reach,
    /// Label selector, unencoded, such as `app=web`; empty for all objects.
    pub selector: &'static str,
    /// Indexes, besides the one by uid that every cache has.
    pub indexes: &'static [Index<T>],
    /// Names of caches whose first lists must be at least as new as this one's.
    pub before: &'static [&'static str],
}

/// Where objects of a cache are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In the namespace that the process is limited to, or in all.
    Watched,
    /// In all namespaces, or in none.
    Cluster,
    /// In the namespace of the process itself.
    Own,
}

impl<T> CacheId<T> {
    /// All objects of a resource, where the process looks.
    pub const fn of(name: &'static str, resource: ResourceId) -> Self {
        Self {
            name,
            resource,
            reach: Reach::Watched,
            selector: "",
            indexes: &[],
            before: &[],
        }
    }

    /// The same elsewhere.
    #[must_use]
    pub const fn reach(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// The same with indexes.
    #[must_use]
    pub const fn indexed(self, indexes: &'static [Index<T>]) -> Self {
        Self { indexes, ..self }
    }

    /// Only objects with these labels.
    #[must_use]
    pub const fn selected(self, selector: &'static str) -> Self {
        Self { selector, ..self }
    }

    /// The first lists of these caches are at least as new as its own.
    #[must_use]
    pub const fn before(self, before: &'static [&'static str]) -> Self {
        Self { before, ..self }
    }
}

/// What following caches takes from its process.
pub struct Following<'f> {
    /// The way to the API server.
    pub client: &'f Client,
    /// Which version of each resource is served.
    pub served: &'f Served,
    /// The namespace that the process is limited to.
    pub namespace: Option<&'f str>,
    /// The namespace of the process itself.
    pub own_namespace: &'f str,
    /// How long first lists may take.
    pub patience: Duration,
    /// Uniform random numbers.
    pub jitter: Jitter,
    /// Turns true when the watches are to end.
    pub stop: watch::Receiver<bool>,
}

/// Gives uniform random numbers.
pub type Jitter = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The watches, and what they keep up to date.
#[derive(Default)]
pub struct Watches {
    /// One for each cache, for as long as the process runs.
    pub tasks: JoinSet<()>,
    /// The caches.
    pub followed: Vec<Followed>,
}

/// A first list that did not arrive.
#[derive(Debug, thiserror::Error)]
#[error("the first list of {name} did not arrive within {patience:?}; may the manager list them?")]
pub struct NotSynced {
    name: &'static str,
    patience: Duration,
}

type Entries<'a> = Vec<&'a Arc<dyn Entry>>;

/// The registry. Filled before [`Caches::start`].
#[derive(Default)]
pub struct Caches {
    entries: Vec<(TypeId, Arc<dyn Entry>)>,
}

impl Caches {
    /// The informer of a cache, which is followed from the start on because somebody asked for it.
    pub fn informer<T: Held>(&mut self, id: &CacheId<T>) -> SharedInformer<T> {
        let cache = self.known(id).unwrap_or_else(|| {
            let cache = Arc::new(Typed::new(id));
            self.entries.push((TypeId::of::<T>(), cache.clone()));
            cache
        });
        cache.informer.clone()
    }

    /// As [`Caches::informer`], or one that stays empty.
    pub fn informer_if<T: Held>(&mut self, is_wanted: bool, id: &CacheId<T>) -> SharedInformer<T> {
        if is_wanted {
            self.informer(id)
        } else {
            SharedInformer::new(id.indexes.iter().copied())
        }
    }

    /// Calls `handler` with every change of a cache. A cache that nobody asked for has none.
    pub fn on_change<T: Held>(&self, id: &CacheId<T>, handler: impl FnMut(&Delta<T>) + Send + 'static) {
        if let Some(cache) = self.known(id) {
            cache.add(Box::new(handler));
        }
    }

    /// The caches with these names, for a controller that writes these resources beside its own kind.
    pub fn view(&self, names: &[&'static str], written: &[ResourceId]) -> View {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        let read = entries.filter(|entry| names.contains(&entry.name()));
        View::new(read.cloned().collect(), written)
    }

    fn known<T: Held>(&self, id: &CacheId<T>) -> Option<Arc<Typed<T>>> {
        let of_type = TypeId::of::<T>();
        let found = self
            .entries
            .iter()
            .find(|(have, entry)| *have == of_type && entry.name() == id.name);
        let entry: Arc<dyn Any + Send + Sync> = found?.1.clone();
        entry.downcast().ok()
    }

    /// Follows every cache whose resource is served; returns once all first lists are in.
    pub async fn start(&self, following: &Following<'_>) -> Result<Watches, NotSynced> {
        let mut watches = Watches::default();
        let served = self.entries.iter().map(|(_, entry)| entry);
        let served: Vec<_> = served
            .filter(|entry| following.served.version(entry.resource()).is_some())
            .collect();
        let mut started: Entries<'_> = Vec::new();
        let mut waiting: Entries<'_> = served.clone();
        while !waiting.is_empty() {
            let waits =
                |entry: &Arc<dyn Entry>| waiting.iter().any(|one| one.before().contains(&entry.name()));
            let (later, ready): (Entries<'_>, Entries<'_>) =
                waiting.iter().copied().partition(|entry| waits(entry));
            // Caches that name each other in a circle have no order.
            let (later, ready) = if ready.is_empty() {
                (Vec::new(), later)
            } else {
                (later, ready)
            };
            for entry in &ready {
                let mut least = None;
                for before in started.iter().filter(|one| one.before().contains(&entry.name())) {
                    least = least.max(Some(synced(before, following.patience).await?));
                }
                if let Some(least) = least
                    && !is_injected(Bug::StaleListTrusted)
                {
                    entry.require(least);
                }
                entry.follow(following, &mut watches);
            }
            started.extend(ready);
            waiting = later;
        }
        for entry in started.iter().rev() {
            synced(entry, following.patience).await?;
        }
        Ok(watches)
    }
}

/// What a cache may hold.
pub trait Held: Cached + DeserializeOwned + Send + Sync + 'static {}

impl<T: Cached + DeserializeOwned + Send + Sync + 'static> Held for T {}

/// Waits for the first list.
async fn synced(entry: &Arc<dyn Entry>, patience: Duration) -> Result<Version, NotSynced> {
    let poll = async {
        loop {
            if let Some(version) = entry.synced_version() {
                return version;
            }
            tokio::time::sleep(STEP).await;
        }
    };
    let name = entry.name();
    tokio::time::timeout(patience, poll)
        .await
        .map_err(|_| NotSynced { name, patience })
}

#[cfg(test)]
mod tests;
