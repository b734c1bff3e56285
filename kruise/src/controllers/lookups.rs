//! What webhooks look up in caches: SidecarSets, labels of namespaces, revisions of sets.
//!
//! Every replica answers webhooks, so every replica has these caches. Where SidecarSets are not served there are none.

use std::sync::{Arc, Mutex, PoisonError};

use kruise_admission::{
    lookup::{Lookup, LookupResult, Pod},
    manifests::{MUTATE_POD, PODS_OF_SETS},
    pod::sidecars::{Revision, Sets, condition},
};
use kruise_api::meta::StringMap;
use kruise_plan_kit::{ResourceId, sidecars::names};
use kruise_runtime::{Served, caches::Caches};
use kruise_server::configuration::{ConditionalWebhook, DesiredCondition};
use kruise_views::{Labels, NamespaceView, NodeView, PodView};
use kube_cache::{ObjectKey, SharedInformer};
use serde_json::Value;
use tokio::sync::watch;

use super::{
    caches::NAMESPACES,
    sidecarset::{CachedRevision, CachedSidecarSet, SET_REVISIONS, SIDECARSETS},
};
use crate::lookup::{Cache, Cached, newest};

/// The webhook whose match condition follows the SidecarSets.
pub fn conditional_webhook() -> ConditionalWebhook {
    ConditionalWebhook {
        name: PODS_OF_SETS.into(),
        path: MUTATE_POD.into(),
        condition: "matches-a-sidecarset".into(),
    }
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
        let is_served = served.version(ResourceId::SIDECARSETS).is_some();
        let lookups = Self {
            served: served.clone(),
            sets: caches.informer_if(is_served, &SIDECARSETS),
            namespaces: caches.informer_if(is_served, &NAMESPACES),
            revisions: caches.informer_if(is_served, &SET_REVISIONS),
            table: Arc::new(Table {
                current: Mutex::new(None),
                changed: watch::channel(()).0,
            }),
            // Without the kind there is nothing to inject, and no pod may depend on the webhook.
            desired: watch::channel(if is_served {
                DesiredCondition::default()
            } else {
                DesiredCondition::Absent
            })
            .0,
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

    /// A revision of a SidecarSet, as stored.
    pub fn revision(&self, namespace: &str, wanted: &Revision) -> Option<Value> {
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

/// What the watches of a manager show.
#[derive(Clone)]
pub struct ReviewCache {
    /// SidecarSets, namespaces and revisions.
    pub lookups: Lookups,
    /// Pods, which a CloneSet may name.
    pub pods: SharedInformer<PodView>,
    /// Nodes.
    pub nodes: SharedInformer<NodeView>,
    /// The manager's, where revisions of SidecarSets are.
    pub namespace: String,
}

impl Cache for ReviewCache {
    fn get(&self, lookup: &Lookup) -> Cached {
        let at = |name: &str| ObjectKey::new("", name);
        match lookup {
            Lookup::SidecarSets => match self.lookups.all() {
                Some(sets) => Cached::Found(LookupResult::SidecarSets(sets)),
                None => Cached::NotSynced,
            },
            Lookup::NamespaceLabels(name) => {
                let namespace = self.lookups.namespaces.snapshot().get(&at(name));
                cached(namespace.map(|namespace| labels(namespace.labels())))
            }
            Lookup::NodeLabels(name) => {
                let node = self.nodes.snapshot().get(&at(name));
                cached(node.map(|node| labels(node.labels())))
            }
            Lookup::PodOwner { namespace, name } => {
                self.pod(&ObjectKey::new(namespace.as_str(), name.as_str()))
            }
            Lookup::Revision(wanted) => {
                let revision = self.lookups.revision(&self.namespace, wanted);
                cached(revision.map(LookupResult::Object))
            }
            // There is no cache of these; of the first it is known that it is not among the others.
            Lookup::SidecarSet(_) | Lookup::Setting(_) | Lookup::Path(_) | Lookup::DryRunCreate { .. } => {
                Cached::Absent
            }
        }
    }
}

impl ReviewCache {
    /// A pod that is not in the first list and came by no event does not exist: lists of names can be long, and most of a
    /// long one are gone already.
    fn pod(&self, key: &ObjectKey) -> Cached {
        match self.pods.snapshot().get(key) {
            Some(pod) => Cached::Found(LookupResult::Pod(owner(&pod))),
            None if self.pods.synced_version().is_some() => Cached::Found(LookupResult::NotFound),
            None => Cached::Absent,
        }
    }
}

fn cached(result: Option<LookupResult>) -> Cached {
    result.map_or(Cached::Absent, Cached::Found)
}

fn labels(labels: &Labels) -> LookupResult {
    let labels = labels
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    LookupResult::Labels(labels.collect::<StringMap>())
}

fn owner(pod: &PodView) -> Pod {
    Pod {
        controller: pod.controller.as_ref().map(|owner| owner.uid.to_string()),
        deleting: pod.deleting,
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
