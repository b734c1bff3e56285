//! The store behind one watch.
//!
//! # Guarantees
//! After an accepted list and any number of events of one watch started at that list's version, the store equals the
//! server's state at some version not below [`Informer::synced_version`]. The server sends the changes of one
//! resource in version order, so three rules are enough:
//!
//! * **Events.** An event at or below the newest applied one was applied before and changes nothing; so a watch that
//!   restarts at an older version cannot restore deleted objects. A deletion of the stored incarnation always applies,
//!   whatever its version, since a uid is never reused. Bookmarks do not count as applied: they carry no object, and if
//!   a server sends one early, later events below it still apply.
//! * **Lists** are applied as a whole. Pages are buffered until the last one. A list below [`Informer::observed`] is
//!   from a stale server and is refused; otherwise it would replace objects by older states. A list at or above it is
//!   complete: missing objects are deleted, objects at the stored version are unchanged. If such a list contains an
//!   object in an older state than the stored one, it is inconsistent and is refused too.
//! * **Incarnations.** Another uid under the same name means that the old object was deleted: two deltas, deletion
//!   first.
//!
//! # Restart
//! A new process has observed nothing, so it cannot detect a stale list. Lists must be quorum reads (the
//! [`Reflector`](crate::Reflector) requests these). A caller that knows a version, for example from an owner read live,
//! requires it with [`Informer::require`].
//!
//! Objects whose version is not comparable are applied in order of arrival.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::IndexTable;
use crate::{Cached, Delta, Error, Event, Index, ObjectKey, Version};

/// Objects of one resource in their last observed state, ordered by key. See the [module](self) for the rules.
#[derive(Debug)]
pub struct Informer<T> {
    objects: BTreeMap<Arc<ObjectKey>, Arc<T>>,
    indexes: Vec<IndexTable<T>>,
    /// Pages of the list in progress.
    listing: Option<BTreeMap<ObjectKey, Arc<T>>>,
    /// Version of the last accepted list.
    synced: Option<Version>,
    /// Version of the newest applied list or object event: events not above it are replays.
    applied: Option<Version>,
    /// Newest version received, bookmarks included.
    observed: Option<Version>,
    /// Version set by [`Informer::require`].
    required: Option<Version>,
}

impl<T: Cached> Informer<T> {
    /// An empty informer with these indexes.
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

    /// Adds an index, unless there is one of this name.
    pub fn add_index(&mut self, index: Index<T>) {
        if self
            .indexes
            .iter()
            .any(|table| table.index.name() == index.name())
        {
            return;
        }
        let mut table = IndexTable::new(index);
        for (key, object) in &self.objects {
            table.insert(index.keys_of(object), key, object);
        }
        self.indexes.push(table);
    }

    /// Applies one event and returns what changed; empty for replays. Deltas of a list come in key order, deletions
    /// first.
    pub fn apply(&mut self, event: Event<T>) -> Result<Vec<Delta<T>>, Error> {
        match event {
            Event::ListStarted => {
                self.listing = Some(BTreeMap::new());
                Ok(Vec::new())
            }
            Event::Page(items) => self.buffer_page(items),
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

    /// Refuses every later list below `version`, which the caller knows to exist.
    pub fn require(&mut self, version: Version) {
        self.required = self.required.max(Some(version));
    }

    /// Accepts the next list whatever its version.
    ///
    /// For servers whose storage was restored from a backup: otherwise every list would be refused until the versions
    /// of the new history exceed those of the old one. Until that list is accepted the objects stay readable, but
    /// [`Informer::synced_version`] and [`Informer::observed`] are `None`.
    pub fn forget_history(&mut self) {
        self.listing = None;
        self.synced = None;
        self.applied = None;
        self.observed = None;
        self.required = None;
    }

    /// Version of the last accepted list. While it is `None`, controllers must not act on the store.
    pub fn synced_version(&self) -> Option<Version> {
        self.synced
    }

    /// Newest version of events, bookmarks and accepted lists: the store contains every change up to it.
    pub fn observed(&self) -> Option<Version> {
        self.observed
    }

    fn buffer_page(&mut self, items: Vec<T>) -> Result<Vec<Delta<T>>, Error> {
        let listing = self.listing.as_mut().ok_or(Error::NotListing)?;
        for item in items {
            let key = ObjectKey::of(&item);
            // A relist mostly repeats stored objects. They are shared, so that memory does not hold two full copies.
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
        let deleted: Vec<_> = self
            .objects
            .keys()
            .filter(|key| !listed.contains_key(key.as_ref()))
            .cloned()
            .collect();
        let mut deltas = Vec::new();
        for key in deleted {
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
        self.record_applied(version);
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
        self.record_applied(version);
        let key = ObjectKey::of(object);
        let is_gone = self.objects.get(&key).is_some_and(|stored| {
            // A later incarnation of this name was deleted, so the stored one was deleted before it.
            stored.uid() == object.uid() || (version.is_some() && version > Version::of(&**stored))
        });
        if is_gone {
            self.remove(&key).into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn record_applied(&mut self, version: Option<Version>) {
        self.applied = self.applied.max(version);
        self.observed = self.observed.max(version);
    }

    fn put(&mut self, key: ObjectKey, object: Arc<T>, deltas: &mut Vec<Delta<T>>) {
        // All index keys are derived before any table changes: if the index function panics, the tables stay
        // consistent.
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

    /// The objects indexed under `key`, in object-key order.
    ///
    /// An index that this informer does not have gives the same result by a scan: a missing registration costs
    /// time, but does not hide objects.
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

/// Same incarnation at the same version.
fn is_same_state<T: Cached>(stored: &T, object: &T) -> bool {
    stored.uid() == object.uid()
        && stored.resource_version() == object.resource_version()
        && !object.resource_version().is_empty()
}

/// The event is not newer than the stored object, though it is above the newest applied version. Possible only after a
/// list that contained objects newer than the list itself.
fn is_replay_of<T: Cached>(stored: &T, object: &T) -> bool {
    match (Version::of(stored), Version::of(object)) {
        (Some(stored), Some(version)) => version <= stored,
        _ => is_same_state(stored, object),
    }
}
