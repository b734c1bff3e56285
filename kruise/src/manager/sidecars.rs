//! What the manager sees of SidecarSets, and of what injection asks besides: labels of namespaces, revisions of sets.
//!
//! Every replica answers webhooks, so every one has these. Where SidecarSets are not served there are none, and nothing
//! is watched.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_admission::pod::sidecars::{Revision, Set, Sets, condition};
use kruise_api::meta::ObjectMeta;
use kruise_plan_kit::sidecars::names;
use kruise_runtime::follow::Scope;
use kruise_server::configuration::Presence;
use kruise_views::{NamespaceView, RevisionView};
use kube_cache::{Delta, Index, ObjectKey, SharedInformer};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use tokio::sync::watch;

use super::{
    caches::{self, Watches, spawn},
    process::Host,
    uninjected::Uninjected,
};
use crate::lookup::newest;

/// A SidecarSet, ready to be matched against pods.
#[derive(Clone, Debug)]
pub struct CachedSidecarSet {
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// The set.
    pub set: Arc<Set>,
}

/// A revision of a SidecarSet: as stored, which is what injection needs, and as plans look at it.
#[derive(Clone, Debug)]
pub struct CachedRevision {
    metadata: ObjectMeta,
    object: Value,
    /// As plans look at it.
    pub view: Arc<RevisionView>,
}

const REVISIONS_BY_UID: Index<CachedRevision> =
    Index::new("uid", |revision| vec![revision.metadata.uid.as_str().into()]);

/// Reads metadata, and drops who wrote which field: nobody asks for it, and it is as long as the rest.
fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(ObjectMeta, Value), D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let metadata = value.get("metadata").cloned().unwrap_or_default();
    Ok((
        ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?,
        value,
    ))
}

impl<'de> Deserialize<'de> for CachedSidecarSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (metadata, object) = read(deserializer)?;
        let set = Arc::new(Set::new(Arc::new(object)));
        Ok(Self { metadata, set })
    }
}

impl<'de> Deserialize<'de> for CachedRevision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (metadata, object) = read(deserializer)?;
        // its data stays text, which only a text can be read to
        let view = serde_json::from_str(&object.to_string()).map_err(D::Error::custom)?;
        Ok(Self {
            metadata,
            object,
            view: Arc::new(view),
        })
    }
}

kube_cache::cached!(CachedSidecarSet, metadata);

kube_cache::cached!(CachedRevision, metadata);

/// What to do with each change.
pub struct SidecarHandlers {
    /// A SidecarSet changed.
    pub set: Box<dyn FnMut(Delta<CachedSidecarSet>) + Send>,
    /// A namespace changed.
    pub namespace: Box<dyn FnMut(Delta<NamespaceView>) + Send>,
    /// A revision of a SidecarSet changed.
    pub revision: Box<dyn FnMut(Delta<CachedRevision>) + Send>,
}

/// The informers.
#[derive(Clone)]
pub struct SidecarCaches {
    /// Version in which SidecarSets are served, if they are.
    version: Option<&'static str>,
    /// SidecarSets in that version.
    pub sets: SharedInformer<CachedSidecarSet>,
    /// All namespaces.
    pub namespaces: SharedInformer<NamespaceView>,
    /// Revisions of SidecarSets, in the manager's namespace.
    pub revisions: SharedInformer<CachedRevision>,
    /// Pods that sets may have missed.
    pub uninjected: Uninjected,
    table: Arc<Table>,
    wish: watch::Sender<Presence>,
}

/// All sets in their order, made when somebody asks after a change.
struct Table {
    current: Mutex<Option<Arc<Sets>>>,
    changed: watch::Sender<()>,
}

impl SidecarCaches {
    /// Empty caches of what is served in this version.
    pub fn new(version: Option<&'static str>) -> Self {
        Self {
            version,
            sets: SharedInformer::new([]),
            namespaces: SharedInformer::new([]),
            revisions: SharedInformer::new([REVISIONS_BY_UID]),
            uninjected: Uninjected::default(),
            table: Arc::new(Table {
                current: Mutex::new(None),
                changed: watch::channel(()).0,
            }),
            wish: watch::channel(Presence::default()).0,
        }
    }

    /// The version in which SidecarSets are served, if they are.
    pub fn version(&self) -> Option<&'static str> {
        self.version
    }

    /// Starts the watches; revisions are those in this namespace.
    pub(super) fn start(
        &self,
        watches: &mut Watches,
        host: &Host,
        namespace: &str,
        handlers: SidecarHandlers,
        stop: &watch::Receiver<bool>,
    ) {
        let Some(version) = self.version else {
            return;
        };
        let all = |path: String| Scope { path, selector: None };
        let table = self.table.clone();
        let SidecarHandlers {
            set: mut on_set,
            namespace: on_namespace,
            revision: on_revision,
        } = handlers;
        spawn(
            watches,
            host,
            all(format!("/apis/apps.kruise.io/{version}/sidecarsets")),
            &self.sets,
            Box::new(move |delta| {
                table.change();
                on_set(delta);
            }),
            stop.clone(),
        );
        spawn(
            watches,
            host,
            all("/api/v1/namespaces".into()),
            &self.namespaces,
            on_namespace,
            stop.clone(),
        );
        let of_sets = Scope {
            path: format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions"),
            selector: Some(format!("labelSelector={}", names::SET_NAME.replace('/', "%2F"))),
        };
        spawn(watches, host, of_sets, &self.revisions, on_revision, stop.clone());
    }

    /// Waits for the first lists.
    pub(super) async fn synced(&self, patience: Duration) -> anyhow::Result<()> {
        if self.version.is_some() {
            caches::synced(&self.sets, "sidecarsets", patience).await?;
            caches::synced(&self.namespaces, "namespaces", patience).await?;
            caches::synced(&self.revisions, "controllerrevisions of sidecarsets", patience).await?;
        }
        Ok(())
    }

    /// All sets in the order of their names; `None` before the first list is in.
    pub fn all(&self) -> Option<Arc<Sets>> {
        if self.version.is_none() {
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

    /// Which pods are to be shown to the webhook, as the leader says.
    pub(super) fn wishes(&self) -> watch::Receiver<Presence> {
        self.wish.subscribe()
    }

    /// Says which pods are to be shown to the webhook, whenever that changes, until told to stop: the work of the leader.
    pub(super) async fn keep_scope(self, mut stop: watch::Receiver<bool>) {
        let mut changes = self.table.changed.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(sets) = self.all() {
                let wished = condition(&sets).map_or(Presence::Absent, Presence::Where);
                self.wish.send_if_modified(|current| {
                    let differs = *current != wished;
                    if differs {
                        *current = wished;
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

    /// Revisions of SidecarSets, for plans.
    pub fn revisions_in(&self, namespace: &str) -> Vec<Arc<RevisionView>> {
        let found = self.revisions.snapshot().list(namespace);
        found.iter().map(|one| one.view.clone()).collect()
    }

    /// Is there a revision of a SidecarSet with this uid?
    pub fn has_revision(&self, uid: &str) -> bool {
        let snapshot = self.revisions.snapshot();
        !snapshot.by_index(&REVISIONS_BY_UID, uid).is_empty()
    }

    /// A revision of a SidecarSet, as stored.
    pub(super) fn revision(&self, namespace: &str, wanted: &Revision) -> Option<Value> {
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
pub(super) mod tests;
