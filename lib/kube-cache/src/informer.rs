//! The store behind one watch.
//!
//! # What it promises
//! After an accepted list and any number of events of one watch started at that list's version, the store equals the
//! server's state at some version not below [`Informer::synced_version`]. The server sends the changes of one
//! resource in version order, so three rules suffice:
//!
//! * **Events.** An event at or below the newest applied one was applied before and changes nothing; so a watch that
//!   starts again too early cannot bring deleted objects back. A deletion of the stored incarnation always holds,
//!   whatever its version, since a uid never returns. Bookmarks do not move this line: they carry no object, and if a
//!   server sends one early, the late events still count.
//! * **Lists** are all or nothing. Pages are kept aside until the last one. A list below [`Informer::observed`] came
//!   from a stale server and is refused: trusting it would move every object back in time. A list at or above it is
//!   the whole truth: missing objects are gone, objects at the stored version are unchanged. If such a list still
//!   holds an object in an older state than the stored one, it contradicts itself and is refused too.
//! * **Incarnations.** Another uid under the same name means that the old object is gone: two deltas, deletion first.
//!
//! # Restart
//! A process that starts anew has observed nothing, so no list looks stale to it. Lists must be quorum reads (the
//! [`Reflector`](crate::Reflector) requests these), and a caller that knows of a version, for example from an
//! owner read live, requires it with [`Informer::require`].
//!
//! Objects whose version is not comparable are taken in order of arrival.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::IndexTable;
use crate::{Cached, Delta, Error, Event, Index, ObjectKey, Version};

/// Objects of one resource as the server last showed them, ordered by key. See the [module](self) for the rules.
#[derive(Debug)]
pub struct Informer<T> {
    objects: BTreeMap<Arc<ObjectKey>, Arc<T>>,
    indexes: Vec<IndexTable<T>>,
    /// Pages of the list in progress.
    listing: Option<BTreeMap<ObjectKey, Arc<T>>>,
    /// Version of the last accepted list.
    synced: Option<Version>,
    /// Newest list or object event in the store: what is not above it is a replay.
    applied: Option<Version>,
    /// Newest version the server has shown, bookmarks included.
    observed: Option<Version>,
    /// Version the caller knows to exist.
    required: Option<Version>,
}

impl<T: Cached> Informer<T> {
    /// An empty informer that maintains the given indexes.
    pub fn new(indexes: impl IntoIterator<Item = Index<T>>) -> Self {
        Self {
            objects: BTreeMap::new(),
            indexes: indexes.into_iter().map(IndexTable::new).collect(),
            listing: None,
            synced: None,
            applied: None,
            observed: None,
            required: None,
        }
    }

    /// Applies one event and returns what changed; empty for replays. Deltas of a list come in key order, deletions
    /// first.
    pub fn apply(&mut self, event: Event<T>) -> Result<Vec<Delta<T>>, Error> {
        match event {
            Event::ListStarted => {
                self.listing = Some(BTreeMap::new());
                Ok(Vec::new())
            }
            Event::Page(items) => self.keep_page(items),
            Event::ListDone { version } => self.finish_list(version),
            Event::Added(object) | Event::Modified(object) => {
                self.synced.ok_or(Error::NotSynced)?;
                Ok(self.apply_upsert(object))
            }
            Event::Deleted(object) => {
                self.synced.ok_or(Error::NotSynced)?;
                Ok(self.apply_deletion(&object))
            }
            Event::Bookmark(version) => {
                self.synced.ok_or(Error::NotSynced)?;
                self.observed = self.observed.max(Some(version));
                Ok(Vec::new())
            }
        }
    }

    /// Refuses from now on every list below `version`, which the caller knows to exist.
    pub fn require(&mut self, version: Version) {
        self.required = self.required.max(Some(version));
    }

    /// Takes the next list as the truth, whatever its version.
    ///
    /// For servers whose storage went back in time (restored from a backup): without this every list would be refused
    /// until the new history overtakes the old one. Until that list is accepted the objects stay readable, but
    /// [`Informer::synced_version`] and [`Informer::observed`] are `None`.
    pub fn forget_history(&mut self) {
        self.listing = None;
        self.synced = None;
        self.applied = None;
        self.observed = None;
        self.required = None;
    }

    /// Version of the last accepted list. While it is `None` the store must not be acted upon.
    pub fn synced_version(&self) -> Option<Version> {
        self.synced
    }

    /// Newest version seen in events, bookmarks and accepted lists: the store shows every change up to it.
    pub fn observed(&self) -> Option<Version> {
        self.observed
    }

    fn keep_page(&mut self, items: Vec<T>) -> Result<Vec<Delta<T>>, Error> {
        let listing = self.listing.as_mut().ok_or(Error::NotListing)?;
        for item in items {
            let key = ObjectKey::of(&item);
            // A relist mostly repeats what is stored: share it, so that two full copies never coexist.
            let object = match self.objects.get(&key) {
                Some(stored) if is_same_state(&**stored, &item) => Arc::clone(stored),
                _ => Arc::new(item),
            };
            listing.insert(key, object);
        }
        Ok(Vec::new())
    }

    fn finish_list(&mut self, version: Version) -> Result<Vec<Delta<T>>, Error> {
        let listed = self.listing.take().ok_or(Error::NotListing)?;
        self.check_list(version, &listed)?;
        let vanished: Vec<_> = self
            .objects
            .keys()
            .filter(|key| !listed.contains_key(key.as_ref()))
            .cloned()
            .collect();
        let mut deltas = Vec::new();
        for key in vanished {
            deltas.extend(self.remove(&key));
        }
        for (key, object) in listed {
            if !self
                .objects
                .get(&key)
                .is_some_and(|stored| is_same_state(&**stored, &*object))
            {
                self.put(key, object, &mut deltas);
            }
        }
        self.synced = Some(version);
        self.applied = self.applied.max(Some(version));
        self.observed = self.observed.max(Some(version));
        Ok(deltas)
    }

    fn check_list(&self, version: Version, listed: &BTreeMap<ObjectKey, Arc<T>>) -> Result<(), Error> {
        if let Some(required) = self.observed.max(self.required)
            && version < required
        {
            return Err(Error::StaleList {
                listed: version,
                required,
            });
        }
        if self.synced.is_none() {
            return Ok(());
        }
        for (key, object) in listed {
            if let Some(stored) = self.objects.get(key)
                && stored.uid() == object.uid()
                && let (Some(item), Some(stored)) = (Version::of(&**object), Version::of(&**stored))
                && item < stored
            {
                return Err(Error::InconsistentList {
                    key: key.clone(),
                    listed: version,
                    item,
                    stored,
                });
            }
        }
        Ok(())
    }

    fn apply_upsert(&mut self, object: T) -> Vec<Delta<T>> {
        let version = Version::of(&object);
        if version.is_some() && version <= self.applied {
            return Vec::new();
        }
        self.note_applied(version);
        let key = ObjectKey::of(&object);
        if let Some(stored) = self.objects.get(&key)
            && is_replay_of(&**stored, &object)
        {
            return Vec::new();
        }
        let mut deltas = Vec::new();
        self.put(key, Arc::new(object), &mut deltas);
        deltas
    }

    fn apply_deletion(&mut self, object: &T) -> Vec<Delta<T>> {
        let version = Version::of(object);
        self.note_applied(version);
        let key = ObjectKey::of(object);
        let is_gone = self.objects.get(&key).is_some_and(|stored| {
            // A later incarnation under this name was deleted: the stored one must have gone before it.
            stored.uid() == object.uid() || (version.is_some() && version > Version::of(&**stored))
        });
        if is_gone {
            self.remove(&key).into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn note_applied(&mut self, version: Option<Version>) {
        self.applied = self.applied.max(version);
        self.observed = self.observed.max(version);
    }

    fn put(&mut self, key: ObjectKey, object: Arc<T>, deltas: &mut Vec<Delta<T>>) {
        // Derive all index keys before touching anything: should a caller's function panic, the tables stay in step.
        let new_keys: Vec<_> = self
            .indexes
            .iter()
            .map(|table| table.index.keys_of(&object))
            .collect();
        let old = self.remove(&key).and_then(|delta| delta.old);
        let key = Arc::new(key);
        for (table, keys) in self.indexes.iter_mut().zip(new_keys) {
            table.insert(keys, &key, &object);
        }
        self.objects.insert(key, Arc::clone(&object));
        match old {
            Some(old) if old.uid() != object.uid() => {
                deltas.push(Delta {
                    old: Some(old),
                    new: None,
                });
                deltas.push(Delta {
                    old: None,
                    new: Some(object),
                });
            }
            old => deltas.push(Delta {
                old,
                new: Some(object),
            }),
        }
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Delta<T>> {
        let stored = self.objects.get(key)?;
        let old_keys: Vec<_> = self
            .indexes
            .iter()
            .map(|table| table.index.keys_of(stored))
            .collect();
        let old = self.objects.remove(key)?;
        for (table, keys) in self.indexes.iter_mut().zip(old_keys) {
            table.remove(&keys, key);
        }
        Some(Delta {
            old: Some(old),
            new: None,
        })
    }
}

impl<T> Informer<T> {
    /// The object under this key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<T>> {
        self.objects.get(key)
    }

    /// All objects in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.objects.values()
    }

    /// The objects of one namespace in name order.
    pub fn list<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<T>> {
        self.objects
            .range(ObjectKey::new(namespace, "")..)
            .take_while(move |(key, _)| &*key.namespace == namespace)
            .map(|(_, object)| object)
    }

    /// The objects filed under `key`, in object-key order.
    ///
    /// An index this informer was not created with gives the same answer by scanning: a wrong wiring costs time, it
    /// never hides objects from a planner.
    pub fn by_index<'a>(
        &'a self,
        index: &Index<T>,
        key: &'a str,
    ) -> impl Iterator<Item = &'a Arc<T>> + use<'a, T> {
        let index = *index;
        let table = self
            .indexes
            .iter()
            .find(|table| table.index.name() == index.name());
        let scan = table.is_none().then(|| {
            self.objects
                .values()
                .filter(move |object| index.keys_of(object).iter().any(|k| &**k == key))
        });
        table
            .into_iter()
            .flat_map(move |table| table.get(key))
            .chain(scan.into_iter().flatten())
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether no object is stored.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

/// Same incarnation at the same version: nothing to report.
fn is_same_state<T: Cached>(stored: &T, object: &T) -> bool {
    stored.uid() == object.uid()
        && stored.resource_version() == object.resource_version()
        && !object.resource_version().is_empty()
}

/// The event is not newer than what is stored, though it is above the newest applied version: possible only
/// after a list that held objects newer than itself.
fn is_replay_of<T: Cached>(stored: &T, object: &T) -> bool {
    match (Version::of(stored), Version::of(object)) {
        (Some(stored), Some(version)) => version <= stored,
        _ => is_same_state(stored, object),
    }
}
