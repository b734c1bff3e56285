//! What webhooks look up in caches: SidecarSets, labels of namespaces, revisions of sets.
//!
//! Every replica answers webhooks, so every replica has these caches. Where SidecarSets are not served there are none.

use std::sync::{Arc, Mutex, PoisonError};

use kruise_admission::pod::{
    Known, Need, Revision,
    sidecars::{Sets, condition},
};
use kruise_api::meta::StringMap;
use kruise_plan_kit::{ResourceId, sidecars::names};
use kruise_runtime::{Served, caches::Caches};
use kruise_server::configuration::DesiredCondition;
use kruise_views::NamespaceView;
use kube_cache::{ObjectKey, SharedInformer};
use serde_json::Value;
use tokio::sync::watch;

use super::{
    caches::NAMESPACES,
    sidecarset::{CachedRevision, CachedSidecarSet, SET_REVISIONS, SIDECARSETS},
};
use crate::lookup::newest;

/// What a cache says of something that a review needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is known now.
    Yes,
    /// Not here: the API server may know.
    No,
    /// Nothing is known before the first list is in.
    NotYet,
}

/// The caches that webhooks read. Cloning shares them.
#[derive(Clone)]
pub struct Lookups {
    served: Arc<Served>,
    /// SidecarSets.
    pub sets: SharedInformer<CachedSidecarSet>,
    /// All namespaces.
    pub namespaces: SharedInformer<NamespaceView>,
    /// Revisions of SidecarSets, in the manager's namespace.
    pub revisions: SharedInformer<CachedRevision>,
    table: Arc<Table>,
    desired: watch::Sender<DesiredCondition>,
}

/// All sets in their order, made when somebody asks after a change.
struct Table {
    current: Mutex<Option<Arc<Sets>>>,
    changed: watch::Sender<()>,
}

impl Lookups {
    /// Asks for the caches.
    pub fn new(caches: &mut Caches, served: &Arc<Served>) -> Self {
        let lookups = Self {
            served: served.clone(),
            sets: caches.informer(&SIDECARSETS),
            namespaces: caches.informer(&NAMESPACES),
            revisions: caches.informer(&SET_REVISIONS),
            table: Arc::new(Table {
                current: Mutex::new(None),
                changed: watch::channel(()).0,
            }),
            desired: watch::channel(DesiredCondition::default()).0,
        };
        let table = lookups.table.clone();
        caches.on_change(&SIDECARSETS, move |_| table.change());
        lookups
    }

    fn is_served(&self) -> bool {
        self.served.version(ResourceId::SIDECARSETS).is_some()
    }

    /// All sets in the order of their names; `None` before the first list is in.
    pub fn all(&self) -> Option<Arc<Sets>> {
        if !self.is_served() {
            return Some(Arc::default());
        }
        self.sets.synced_version()?;
        let mut current = self.table.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_none() {
            let sets = self.sets.snapshot().list("");
            *current = Some(Arc::new(Sets::new(sets.iter().map(|cached| cached.set.clone()))));
        }
        current.clone()
    }

    /// Adds what is here to `known`.
    pub fn answer(&self, namespace: &str, need: &Need, known: &mut Known) -> Found {
        match need {
            Need::Sets => {
                known.sets = self.all();
                match known.sets {
                    Some(_) => Found::Yes,
                    None => Found::NotYet,
                }
            }
            Need::Namespace(name) => {
                let Some(found) = self.namespaces.snapshot().get(&ObjectKey::new("", name.as_str())) else {
                    return Found::No;
                };
                let labels: StringMap = found
                    .labels()
                    .iter()
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .collect();
                known.namespaces.insert(name.clone(), Some(labels));
                Found::Yes
            }
            // Rarely asked, and of the first it is known that it is not here.
            Need::Set(_) | Need::Whitelist | Need::Look(_) => Found::No,
            Need::Revision(wanted) => {
                let Some(found) = self.revision(namespace, wanted) else {
                    return Found::No;
                };
                known.revisions.insert(wanted.clone(), Some(found));
                Found::Yes
            }
        }
    }

    /// The match condition of the webhook that injects sidecars, as the leader derives it from the sets.
    pub fn condition(&self) -> watch::Receiver<DesiredCondition> {
        self.desired.subscribe()
    }

    /// Keeps the match condition up to date until the receiver turns true: work of the leader.
    pub async fn keep_condition(self, mut stop: watch::Receiver<bool>) {
        let mut changes = self.table.changed.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(sets) = self.all() {
                let desired = condition(&sets).map_or(DesiredCondition::Absent, DesiredCondition::Expression);
                self.desired.send_if_modified(|current| {
                    let differs = *current != desired;
                    if differs {
                        *current = desired;
                    }
                    differs
                });
            }
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                // The caches hold the sender.
                _ = changes.changed() => {}
            }
        }
    }

    fn revision(&self, namespace: &str, wanted: &Revision) -> Option<Value> {
        let snapshot = self.revisions.snapshot();
        match wanted {
            Revision::Named(name) => {
                let found = snapshot.get(&ObjectKey::new(namespace, name.as_str()))?;
                Some(found.object.clone())
            }
            Revision::Versioned { set, version } => {
                let found = snapshot.list(namespace).into_iter().filter(|one| {
                    let label = |key| one.metadata.labels.get(key).map(String::as_str);
                    label(names::SET_NAME) == Some(set) && label(names::CUSTOM_VERSION) == Some(version)
                });
                newest(found.map(|one| one.object.clone()).collect())
            }
        }
    }
}

impl Table {
    fn change(&self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.send_replace(());
    }
}

#[cfg(test)]
pub(crate) mod tests;
