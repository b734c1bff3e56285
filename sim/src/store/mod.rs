//! Objects, their history, and the one revision counter.
//!
//! * Every change takes the next revision, which is the object's `resourceVersion`; a deletion takes one too.
//! * An object is its JSON text plus a small head with what selectors and garbage collection need; it is immutable
//!   and shared by lists, the log and watches.
//! * The newest writes are also kept decoded, a bounded number of them, because they are what is read next.
//! * Each resource keeps a bounded log of changes, old and new state. States within the log can be read again, which
//!   is what makes `continue` consistent and watches resumable; below it lies compaction.

mod head;
mod id;
mod log;
mod resource;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Weak};

use serde_json::Value;

use crate::wire;

pub(crate) use self::head::Head;
pub(crate) use self::id::ResourceId;
pub(crate) use self::log::{Change, Log};
pub(crate) use self::resource::{Collection, Key};

/// How many of the newest writes are kept decoded, and the longest text of which that is done: a few dozen MiB at most.
const DECODED: usize = 200;
const DECODED_TEXT: usize = 16 << 10;
/// What requests of all kinds are held against stays decoded: configurations of admission.
const CONSULTED: &str = "admissionregistration.k8s.io";

/// An object as it was written.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The revision of the write.
    pub(crate) revision: u64,
    pub(crate) head: Head,
    /// The object in its storage version.
    pub(crate) json: Box<[u8]>,
    /// The value of the text: both are made of the same object, and neither changes.
    decoded: Decoded,
}

#[derive(Debug)]
enum Decoded {
    Kept(Arc<Value>),
    /// As long as it is among the newest.
    New(Weak<Value>),
}

impl Stored {
    /// The object in the version it was stored in.
    pub(crate) fn value(&self) -> Arc<Value> {
        let kept = match &self.decoded {
            Decoded::Kept(value) => Some(value.clone()),
            Decoded::New(value) => value.upgrade(),
        };
        kept.unwrap_or_else(|| Arc::new(decode(&self.json)))
    }

    /// Whether this is what a value was stored as: the very value, not one that is equal.
    pub(crate) fn is(&self, value: &Arc<Value>) -> bool {
        match &self.decoded {
            Decoded::Kept(kept) => Arc::ptr_eq(kept, value),
            Decoded::New(kept) => std::ptr::eq(kept.as_ptr(), Arc::as_ptr(value)),
        }
    }
}

fn decode(json: &[u8]) -> Value {
    wire::parse(json).unwrap_or_default()
}

/// A place in the store.
pub(crate) type Place = (ResourceId, Key);

/// Everything that is stored.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    revision: u64,
    /// Changes kept per resource.
    window: usize,
    collections: BTreeMap<ResourceId, Collection>,
    /// History up to here is gone, also of resources that have none yet.
    compacted: u64,
    /// Who names an owner, by the owner's uid.
    dependents: BTreeMap<Box<str>, BTreeSet<Place>>,
    /// Uids of all objects.
    uids: BTreeSet<Box<str>>,
    /// Objects being deleted.
    deleting: BTreeSet<Place>,
    /// The newest writes, decoded.
    decoded: VecDeque<Arc<Value>>,
}

impl Store {
    pub(crate) fn new(window: usize) -> Self {
        Self {
            revision: 1,
            window,
            collections: BTreeMap::new(),
            compacted: 0,
            dependents: BTreeMap::new(),
            uids: BTreeSet::new(),
            deleting: BTreeSet::new(),
            decoded: VecDeque::new(),
        }
    }

    /// What is stored of an object that was written just now.
    fn stored(&mut self, id: &ResourceId, head: Head, object: &Arc<Value>) -> Arc<Stored> {
        let json = wire::text(object).into_boxed_slice();
        let decoded = if id.group.as_ref() == CONSULTED {
            Decoded::Kept(object.clone())
        } else if json.len() <= DECODED_TEXT {
            self.decoded.push_back(object.clone());
            if self.decoded.len() > DECODED {
                self.decoded.pop_front();
            }
            Decoded::New(Arc::downgrade(object))
        } else {
            Decoded::New(Weak::new())
        };
        Arc::new(Stored {
            revision: self.revision,
            head,
            json,
            decoded,
        })
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The revision that the next write takes.
    pub(crate) fn next_revision(&self) -> u64 {
        self.revision + 1
    }

    pub(crate) fn collection(&self, id: &ResourceId) -> Option<&Collection> {
        self.collections.get(id)
    }

    /// The collection of a resource that never had objects.
    pub(crate) fn empty(&self) -> Collection {
        Collection::since(self.compacted)
    }

    pub(crate) fn get(&self, id: &ResourceId, key: &Key) -> Option<&Arc<Stored>> {
        self.collections.get(id)?.get(key)
    }

    /// Writes an object that already holds [`Store::next_revision`].
    pub(crate) fn put(&mut self, id: &ResourceId, key: Key, head: Head, object: &Arc<Value>) -> Arc<Stored> {
        self.revision += 1;
        let stored = self.stored(id, head, object);
        let compacted = self.compacted;
        let new = || Collection::since(compacted);
        let collection = self.collections.entry(id.clone()).or_insert_with(new);
        let old = collection.put(key.clone(), stored.clone(), self.window);
        self.relink((id.clone(), key), old.as_deref(), Some(&stored));
        stored
    }

    /// Removes an object; `object` is its last state, which already holds [`Store::next_revision`].
    pub(crate) fn remove(&mut self, id: &ResourceId, key: &Key, object: &Arc<Value>) -> Option<Arc<Stored>> {
        let old = self.get(id, key)?.clone();
        self.revision += 1;
        let last = self.stored(id, old.head.clone(), object);
        let collection = self.collections.get_mut(id)?;
        collection.remove(key, last.clone(), self.window);
        self.relink((id.clone(), key.clone()), Some(&old), None);
        Some(last)
    }

    /// Takes an object that was stored before this store began.
    pub(crate) fn take(&mut self, id: &ResourceId, key: Key, head: Head, json: Vec<u8>, revision: u64) {
        let decoded = if id.group.as_ref() == CONSULTED {
            Decoded::Kept(Arc::new(decode(&json)))
        } else {
            Decoded::New(Weak::new())
        };
        let stored = Arc::new(Stored {
            revision,
            head,
            json: json.into_boxed_slice(),
            decoded,
        });
        let collection = self.collections.entry(id.clone()).or_default();
        collection.put(key.clone(), stored.clone(), self.window);
        self.relink((id.clone(), key), None, Some(&stored));
    }

    /// Begins after what was taken: at a revision, without history of these resources.
    pub(crate) fn begin_at(&mut self, revision: u64, resources: impl Iterator<Item = ResourceId>) {
        for id in resources {
            self.collections.entry(id).or_default();
        }
        self.revision = revision;
        self.compact();
    }

    /// Forgets the history of all resources up to the newest revision.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.revision;
        for collection in self.collections.values_mut() {
            collection.log.clear(self.revision);
        }
    }

    /// Drops a resource with all its objects: its definition is gone.
    pub(crate) fn forget(&mut self, id: &ResourceId) {
        let Some(collection) = self.collections.remove(id) else {
            return;
        };
        for (key, stored) in collection.range("", None) {
            self.relink((id.clone(), key.clone()), Some(stored), None);
        }
    }

    /// Whether an object with this uid exists.
    pub(crate) fn has_uid(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }

    /// Objects being deleted.
    pub(crate) fn deleting(&self) -> impl Iterator<Item = &Place> {
        self.deleting.iter()
    }

    /// Who names this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Place> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Every owner that somebody names, with those who do.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&str, &BTreeSet<Place>)> {
        self.dependents.iter().map(|(uid, places)| (uid.as_ref(), places))
    }

    pub(crate) fn collections(&self) -> impl Iterator<Item = (&ResourceId, &Collection)> {
        self.collections.iter()
    }

    /// Keeps what is derived from heads in step with them.
    fn relink(&mut self, place: Place, old: Option<&Stored>, new: Option<&Stored>) {
        if let Some(old) = old {
            self.uids.remove(&old.head.uid);
        }
        if let Some(new) = new {
            self.uids.insert(new.head.uid.clone());
        }
        if new.is_some_and(|new| new.head.deleting) {
            self.deleting.insert(place.clone());
        } else {
            self.deleting.remove(&place);
        }
        let owners = |stored: Option<&Stored>| -> BTreeSet<Box<str>> {
            stored
                .into_iter()
                .flat_map(|one| one.head.owners.iter().cloned())
                .collect()
        };
        let (before, after) = (owners(old), owners(new));
        for gone in before.difference(&after) {
            if let Some(places) = self.dependents.get_mut(gone) {
                places.remove(&place);
                if places.is_empty() {
                    self.dependents.remove(gone);
                }
            }
        }
        for added in after.difference(&before) {
            let places = self.dependents.entry(added.clone()).or_default();
            places.insert(place.clone());
        }
    }
}

#[cfg(test)]
mod tests;
