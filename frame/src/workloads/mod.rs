//! The workload finder: what is known of the workloads of pods, from caches and from the API server.
//!
//! The decisions are `kruise_plan_kit::workloads`. This module answers what they ask for.
//!
//! # How to use it
//! - **A controller** takes [`Workloads`] from `setup.parts.workloads`, and passes [`Workloads::source`] to
//!   `plan_kit::workloads::{chain, of_target, of_selector}`. Some kinds are in caches ([`WorkloadKind`]), which are
//!   followed if a controller that is on needs them ([`Workloads::new`]); map their changes to keys with
//!   `wiring.maps`. A workload of any other kind is unknown when first asked for. It is then read, and read again
//!   every few seconds while it is asked for, by the task [`Workloads::run`] of the leader. Changes are passed to
//!   the handlers of [`Workloads::on_change`].
//! - **A review** of a new pod takes the chain of its owners from [`Workloads::cached_owners`], or else from
//!   [`Workloads::owners`], which reads what the caches do not have within [`LIMIT`]. What cannot be read in time
//!   ends the chain, and never fails the review.
//! - **A review** of a pod that a budget would keep takes whether anybody wants it from [`Workloads::cached_wanted`],
//!   or else from [`Reader::wanted`], which reads its owners.
//! - **A command** such as `kruise explain` has no caches, and reads everything with a [`Reader`].
//!
//! # How a workload of a kind without a cache is read
//! The kind is looked up in the discovery documents of its group, in any served version. The object itself says who
//! controls it, and whether it is being deleted. Its scale subresource says how many pods it wants and which labels
//! they have; for a kind that administrators name in the manager's configuration
//! (`PPS_Watch_Custom_Workload_WhiteList`), `spec.replicas` does. Where the manager may not read the object, the
//! scale alone is used. If there is neither, it cannot be read.

mod kinds;
mod polled;
mod reader;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod unwanted;
mod wanted;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kruise_plan_kit::{
    Need, ResourceId,
    workloads::{AllowedKind, Aspect, Known, Workload, chain},
};
use kruise_runtime::{
    ApiError, Client, Served,
    caches::{CacheId, Caches, Held},
};
use kruise_views::{OwnerView, WorkloadView};
use kube_cache::ObjectKey;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use polled::Polled;
pub use reader::Reader;

/// Time limit for reading the owners of a pod that is being reviewed.
pub const LIMIT: Duration = Duration::from_millis(300);

/// A kind of workload whose objects are in a cache, so that they are found without a request.
pub trait CachedWorkload: 'static {
    /// An object in the cache.
    type Object: Held;

    /// The cache.
    const CACHE: CacheId<Self::Object>;
    /// Group and kind.
    const GROUP_KIND: (&'static str, &'static str);

    /// What is known of an object as a workload of pods.
    fn view(object: &Self::Object) -> WorkloadView;
}

/// A [`CachedWorkload`] without its type.
#[derive(Clone, Copy)]
pub struct WorkloadKind {
    /// The resource.
    pub resource: ResourceId,
    /// Group and kind.
    pub group_kind: (&'static str, &'static str),
    /// Follows the cache if that is wanted; without, it stays empty.
    follow: fn(&mut Caches, bool) -> Find,
}

/// The object of a key, as far as a cache has it.
type Find = Arc<dyn Fn(&ObjectKey) -> Option<WorkloadView> + Send + Sync>;

impl WorkloadKind {
    /// The kind of a type.
    pub const fn of<W: CachedWorkload>() -> Self {
        Self {
            resource: W::CACHE.resource,
            group_kind: W::GROUP_KIND,
            follow: |caches, is_wanted| {
                let cache = caches.informer_if(is_wanted, &W::CACHE);
                Arc::new(move |key| cache.snapshot().get(key).map(|found| W::view(&found)))
            },
        }
    }
}

/// The workloads of a process. Cloning shares them.
#[derive(Clone)]
pub struct Workloads {
    /// The kinds that have a cache.
    kinds: Arc<[(WorkloadKind, Find)]>,
    /// Which of our kinds are served: the caches of the others stay empty.
    served: Arc<Served>,
    reader: Reader,
    polled: Polled,
}

impl Workloads {
    /// The finder of a process. The caches of these kinds are followed if something in it `is_wanted` that asks for
    /// workloads. `namespace` is that of the manager's configuration.
    pub fn new(
        kinds: Vec<WorkloadKind>,
        caches: &mut Caches,
        served: &Arc<Served>,
        is_wanted: bool,
        client: &Client,
        namespace: &str,
    ) -> Self {
        let reader = Reader::new(client.clone(), namespace);
        let followed = kinds
            .into_iter()
            .map(|kind| (kind, (kind.follow)(caches, is_wanted)));
        Self {
            kinds: followed.collect(),
            served: served.clone(),
            polled: Polled::new(reader.clone()),
            reader,
        }
    }

    /// What is known of the workloads of a namespace, for plans. A kind without a cache is unknown at first.
    pub fn source<'a>(&'a self, namespace: &'a str) -> impl Fn(&Workload, Aspect) -> Known + 'a {
        move |workload, aspect| {
            // Caches that plans read are complete, but may be older than what names the workload.
            match self.cached(namespace, workload) {
                Some(_) if aspect == Aspect::Live => Known::NotYet,
                Some(found) => found,
                // What is read every few seconds is no cache.
                None => self.polled.known(namespace, workload, aspect.min(Aspect::Scale)),
            }
        }
    }

    /// The kind of a workload, if it has a cache.
    fn kind(&self, workload: &Workload) -> Option<&(WorkloadKind, Find)> {
        let mut kinds = self.kinds.iter();
        let found = kinds.find(|(kind, _)| kind.group_kind == workload.group_kind())?;
        self.served.version(found.0.resource).is_some().then_some(found)
    }

    /// That a plan reads a workload, with or without which it goes on; `None` if its kind has no cache.
    pub fn need(&self, namespace: &str, workload: &Workload) -> Option<Need> {
        let (kind, _) = self.kind(workload)?;
        Some(Need::Content(
            kind.resource,
            namespace.to_owned(),
            workload.name.clone(),
        ))
    }

    /// What the cache of its kind has of a workload; `None` if its kind has no cache.
    fn cached(&self, namespace: &str, workload: &Workload) -> Option<Known> {
        let (_, find) = self.kind(workload)?;
        let found = find(&ObjectKey::new(namespace, workload.name.as_str()));
        Some(found.map_or(Known::Gone, |found| Known::Found(Arc::new(found))))
    }

    /// A workload as the cache of its kind has it; `None` if that does not have it, or its kind has no cache.
    pub fn cached_view(&self, namespace: &str, workload: &Workload) -> Option<Arc<WorkloadView>> {
        match self.cached(namespace, workload) {
            Some(Known::Found(found)) => Some(found),
            // It may be newer than the cache.
            _ => None,
        }
    }

    /// The workloads that the pods of this controller belong to, from it upwards, as far as the caches have them;
    /// `None` if they do not have all.
    pub fn cached_owners(&self, namespace: &str, controller: &Workload) -> Option<Vec<Workload>> {
        let known = |workload: &Workload, _: Aspect| match self.cached(namespace, workload) {
            Some(Known::Found(found)) => Known::Found(found),
            // It may be newer than the cache.
            _ => Known::NotYet,
        };
        let found = chain(&controller.into(), &known);
        found.missing.is_none().then_some(found.workloads)
    }

    /// The workloads that the pods of this controller belong to, from it upwards. What the caches do not have is
    /// read within [`LIMIT`].
    pub async fn owners(&self, namespace: &str, controller: &Workload) -> Vec<Workload> {
        let cached = |workload: &Workload| {
            let found = self.cached(namespace, workload);
            found.filter(|found| matches!(found, Known::Found(_)))
        };
        self.reader.owners(namespace, controller, &cached).await
    }

    /// Calls `handler` with the namespace of each workload without a cache that is no longer known as it was.
    pub fn on_change(&self, handler: impl Fn(&str) + Send + Sync + 'static) {
        self.polled.on_change(Box::new(handler));
    }

    /// The kinds of workloads that administrators name.
    ///
    /// # Errors
    /// If the server does not answer, or answers that it failed.
    pub async fn allowed_kinds(&self) -> Result<Arc<Vec<AllowedKind>>, ApiError> {
        self.reader.allowed().await
    }

    /// A list in the manager's configuration: [`Reader::listed`].
    ///
    /// # Errors
    /// If the server does not answer, or answers that it failed.
    pub async fn listed<T>(
        &self,
        key: &str,
        parse: fn(&str) -> Result<Vec<T>, String>,
    ) -> Result<Arc<Vec<T>>, ApiError> {
        self.reader.listed(key, parse).await.map(Arc::new)
    }

    /// What is known of a workload as it is stored, with all of its numbers, whether its kind has a cache or not.
    /// It is unknown at first.
    pub fn stored(&self, namespace: &str, workload: &Workload) -> Known {
        self.polled.known(namespace, workload, Aspect::Scale)
    }

    /// Reads workloads without a cache that plans ask for, until `stop` turns true.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        self.polled.run(stop).await;
    }
}

impl Reader {
    /// The workloads that the pods of this controller belong to, from it upwards. What `cached` does not have is
    /// read within [`LIMIT`]; the chain ends at what cannot be read.
    pub async fn owners(
        &self,
        namespace: &str,
        controller: &Workload,
        cached: &(dyn Fn(&Workload) -> Option<Known> + Sync),
    ) -> Vec<Workload> {
        let deadline = Instant::now() + LIMIT;
        let owner = OwnerView::from(controller);
        let mut read = BTreeMap::new();
        loop {
            let known = |workload: &Workload, _: Aspect| {
                let found = cached(workload).or_else(|| read.get(workload).cloned());
                found.unwrap_or(Known::NotYet)
            };
            let found = chain(&owner, &known);
            let Some(missing) = found.missing else {
                return found.workloads;
            };
            let result = timeout_at(deadline, self.read(namespace, &missing, Aspect::Owner)).await;
            let why = match result {
                Ok(Ok(known)) => {
                    read.insert(missing, known);
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the API server is too slow".to_owned(),
            };
            tracing::warn!(
                namespace,
                kind = missing.kind,
                name = missing.name,
                "an owner cannot be read: {why}"
            );
            read.insert(missing, Known::Unreadable);
        }
    }
}
