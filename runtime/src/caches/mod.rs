//! The shared informers of a process: one watch for each [`CacheId`].
//!
//! # Guarantees
//! - A cache is created on request, and watched only if the cluster serves its resource. Requests with the same
//!   [`CacheId`] share one watch and one copy.
//! - A cache of owners lists the caches of owned objects in [`CacheId::before`]. Their first lists are at least as
//!   new as its own, so that an owner is not reconciled without objects that it already has.
//! - All first lists are requested at the same time. Before that, the current version of the server is read. Owners are
//!   listed at exactly that version, and everything else in its current state, which is not older. If the server cannot
//!   list them at that version, their list is newer, and owned objects are brought up to it before the caches count as
//!   synced.
//! - Objects that a webhook may convert are listed once it is served ([`Following::convertible`]).
//! - The handlers of a cache receive every change in the order of their registration.
//!
//! # What is not here
//! Kinds. Each caller declares its caches as data.

mod entry;
mod view;

use std::{
    any::{Any, TypeId},
    sync::Arc,
    time::Duration,
};

use kruise_plan_kit::ResourceId;
use kruise_plan_kit::injected::is_injected;
use kube_cache::{Cached, Delta, Index, SharedInformer, Version};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};

use crate::{
    Client, Served,
    client::Form,
    follow::FirstList,
    freshness::{Followed, bring_up, version_now},
    shutdown::stopped,
};
use entry::{Entry, Typed};

pub use view::{CacheView, View};

/// Time between two checks for the first list.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Declares the objects of a cache. A constant next to the type of the objects.
#[derive(Debug)]
pub struct CacheId<T: 'static> {
    /// Name in errors; unique for the type of its objects.
    pub name: &'static str,
    /// The watched resource.
    pub resource: ResourceId,
    /// The watched namespaces.
    pub reach: Reach,
    /// Label selector, unencoded, such as `app=web`; empty for all objects.
    pub selector: &'static str,
    /// Field selector, unencoded, such as `type!=Opaque`; empty for all objects.
    pub fields: &'static str,
    /// How much of each object the server sends.
    pub form: Form,
    /// Indexes in addition to the one by uid, which every cache has, and to those of its readers ([`Caches::indexed`]).
    pub indexes: &'static [Index<T>],
    /// Names of caches whose first lists must be at least as new as this one's.
    pub before: &'static [&'static str],
    /// Whether its first list is streamed by servers that can ([`FirstList::Streamed`]), if it is not one of owners.
    pub is_streamed: bool,
}

/// The namespaces of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The namespace that the process is limited to, otherwise all.
    Watched,
    /// All namespaces, or a cluster-scoped resource.
    Cluster,
    /// The namespace of the process.
    Own,
}

impl<T> CacheId<T> {
    /// All objects of a resource in the namespaces of [`Reach::Watched`].
    pub const fn of(name: &'static str, resource: ResourceId) -> Self {
        Self {
            name,
            resource,
            reach: Reach::Watched,
            selector: "",
            fields: "",
            form: Form::Whole,
            indexes: &[],
            before: &[],
            is_streamed: false,
        }
    }

    /// Of a resource with so many objects that its first list decides how long a start takes.
    #[must_use]
    pub const fn streamed(self) -> Self {
        Self {
            is_streamed: true,
            ..self
        }
    }

    /// With other namespaces.
    #[must_use]
    pub const fn reach(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// With indexes.
    #[must_use]
    pub const fn indexed(self, indexes: &'static [Index<T>]) -> Self {
        Self { indexes, ..self }
    }

    /// With a label selector.
    #[must_use]
    pub const fn selected(self, selector: &'static str) -> Self {
        Self { selector, ..self }
    }

    /// With a field selector.
    #[must_use]
    pub const fn with_fields(self, fields: &'static str) -> Self {
        Self { fields, ..self }
    }

    /// Of the metadata only: the server does not send the rest, such as the data of Secrets.
    #[must_use]
    pub const fn of_metadata(self) -> Self {
        Self {
            form: Form::Metadata,
            ..self
        }
    }

    /// With caches whose first lists must be at least as new as its own.
    #[must_use]
    pub const fn before(self, before: &'static [&'static str]) -> Self {
        Self { before, ..self }
    }
}

/// What [`Caches::start`] needs from the process.
pub struct Following<'f> {
    /// Client of the API server.
    pub client: &'f Client,
    /// Which version of each resource is served.
    pub served: &'f Served,
    /// The namespace that the process is limited to.
    pub namespace: Option<&'f str>,
    /// The namespace of the process.
    pub own_namespace: &'f str,
    /// Timeout of the first lists.
    pub patience: Duration,
    /// Uniform random numbers.
    pub jitter: Jitter,
    /// Turns true when the webhook that converts objects is served.
    pub convertible: watch::Receiver<bool>,
    /// True when the watches must end.
    pub stop: watch::Receiver<bool>,
}

/// Returns uniform random numbers.
pub type Jitter = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The running watches and their caches.
#[derive(Default)]
pub struct Watches {
    /// One task for each watched cache, until the process stops.
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

/// Caches whose watches have begun.
type Started<'a> = Vec<(&'a Arc<dyn Entry>, Followed)>;

/// The registry. Filled before [`Caches::start`].
#[derive(Default)]
pub struct Caches {
    entries: Vec<(TypeId, Arc<dyn Entry>)>,
}

impl Caches {
    /// The informer of a cache, which [`Caches::start`] will watch.
    pub fn informer<T: Held>(&mut self, id: &CacheId<T>) -> SharedInformer<T> {
        let cache = self.known(id).unwrap_or_else(|| {
            let cache = Arc::new(Typed::new(id));
            self.entries.push((TypeId::of::<T>(), cache.clone()));
            cache
        });
        cache.informer.clone()
    }

    /// As [`Caches::informer`], with indexes that only this reader needs.
    pub fn indexed<T: Held>(&mut self, id: &CacheId<T>, indexes: &[Index<T>]) -> SharedInformer<T> {
        let informer = self.informer(id);
        for index in indexes {
            informer.add_index(*index);
        }
        informer
    }

    /// As [`Caches::informer`] if `is_wanted`, otherwise an informer that stays empty.
    pub fn informer_if<T: Held>(&mut self, is_wanted: bool, id: &CacheId<T>) -> SharedInformer<T> {
        if is_wanted {
            self.informer(id)
        } else {
            SharedInformer::new(id.indexes.iter().copied())
        }
    }

    /// Calls `handler` with every change of a cache. Without effect if the cache was not requested before.
    pub fn on_change<T: Held>(&self, id: &CacheId<T>, handler: impl FnMut(&Delta<T>) + Send + 'static) {
        if let Some(cache) = self.known(id) {
            cache.add(Box::new(handler));
        }
    }

    /// The caches with these names.
    pub fn view(&self, names: &[&'static str]) -> View {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        let read = entries.filter(|entry| names.contains(&entry.name()));
        View::new(read.cloned().collect())
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

    /// Watches every cache whose resource is served. Returns once all of them are synced.
    pub async fn start(&self, following: &Following<'_>) -> Result<Watches, NotSynced> {
        let mut scopes = Vec::new();
        for (_, entry) in &self.entries {
            let is_served = following.served.version(entry.resource()).is_some();
            if let Some(scope) = entry.scope(following).filter(|_| is_served) {
                scopes.push((entry, scope));
            }
        }
        let present: Vec<&Arc<dyn Entry>> = scopes.iter().map(|(entry, _)| *entry).collect();
        let owns = |owner: &Arc<dyn Entry>, owned: &Arc<dyn Entry>| owner.before().contains(&owned.name());
        let is_owner = |entry: &Arc<dyn Entry>| present.iter().any(|owned| owns(entry, owned));
        let mut of_owned = scopes
            .iter()
            .filter(|(owned, _)| present.iter().any(|owner| owns(owner, owned)));
        let first = match of_owned.next() {
            Some((owned, scope)) if !is_injected("StaleListTrusted") => {
                within(
                    owned.name(),
                    following.patience,
                    version_now(following.client, scope),
                )
                .await?
            }
            _ => None,
        };
        for (entry, scope) in &mut scopes {
            if let Some(version) = first.filter(|_| is_owner(entry)) {
                scope.first = FirstList::At(version);
            }
        }
        let (later, now): (Vec<_>, Vec<_>) = scopes
            .into_iter()
            .partition(|(entry, _)| Served::may_be_converted(entry.resource()));
        let mut tasks = JoinSet::new();
        let mut started: Started<'_> = Vec::new();
        for (entry, scope) in now {
            started.push((entry, entry.follow(scope, following, &mut tasks)));
        }
        if !later.is_empty() {
            // A list that fails meanwhile ends the wait.
            let listed = async {
                for (entry, _) in &started {
                    within(entry.name(), following.patience, synced(entry)).await?;
                }
                Ok(())
            };
            let convertible = || stopped(following.convertible.clone());
            tokio::select! {
                biased;
                () = convertible() => {}
                listed = listed => {
                    listed?;
                    convertible().await;
                }
            }
        }
        for (entry, scope) in later {
            started.push((entry, entry.follow(scope, following, &mut tasks)));
        }
        let mut behind = Vec::new();
        for (owner, _) in &started {
            let version = within(owner.name(), following.patience, synced(owner)).await?;
            let owned = started.iter().filter(|(owned, _)| owns(owner, owned));
            behind.extend(owned.map(|(owned, followed)| (owned.name(), followed, version)));
        }
        if !is_injected("StaleListTrusted") {
            for (name, followed, version) in behind {
                within(name, following.patience, bring_up(&mut vec![(followed, version)])).await?;
            }
        }
        let followed = started.into_iter().map(|(_, followed)| followed).collect();
        Ok(Watches { tasks, followed })
    }
}

/// The types of objects that a cache can store.
pub trait Held: Cached + DeserializeOwned + Send + Sync + 'static {}

impl<T: Cached + DeserializeOwned + Send + Sync + 'static> Held for T {}

/// Waits for the first list.
async fn synced(entry: &Arc<dyn Entry>) -> Version {
    loop {
        if let Some(version) = entry.synced_version() {
            return version;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The result of a wait for the first list of a cache.
async fn within<R>(
    name: &'static str,
    patience: Duration,
    wait: impl Future<Output = R>,
) -> Result<R, NotSynced> {
    let result = tokio::time::timeout(patience, wait).await;
    result.map_err(|_| NotSynced { name, patience })
}

#[cfg(test)]
mod tests;
