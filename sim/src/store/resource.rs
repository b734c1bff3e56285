//! All objects of one resource.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{Change, Log, Stored};

/// Namespace (empty for cluster-wide resources) and name; lists come in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// Objects by key, and their history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collection {
    objects: BTreeMap<Key, Arc<Stored>>,
    pub(crate) log: Log,
}

impl Collection {
    /// Without objects, and without history up to a revision.
    pub(super) fn since(revision: u64) -> Self {
        let mut out = Self::default();
        out.log.clear(revision);
        out
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn put(&mut self, key: Key, new: Arc<Stored>, window: usize) -> Option<Arc<Stored>> {
        let old = self.objects.insert(key.clone(), new.clone());
        let change = Change {
            revision: new.revision,
            key,
            old: old.clone(),
            new,
            deleted: false,
        };
        self.log.push(change, window);
        old
    }

    pub(super) fn remove(&mut self, key: &Key, last: Arc<Stored>, window: usize) {
        let old = self.objects.remove(key);
        let change = Change {
            revision: last.revision,
            key: key.clone(),
            old,
            new: last,
            deleted: true,
        };
        self.log.push(change, window);
    }

    /// Objects in order, of one namespace or (empty) of all, after a key.
    pub(crate) fn range(
        &self,
        namespace: &str,
        after: Option<&Key>,
    ) -> impl Iterator<Item = (&Key, &Arc<Stored>)> {
        let all = namespace.is_empty();
        let namespace: Arc<str> = namespace.into();
        let from = match after {
            Some(key) => Bound::Excluded(key.clone()),
            None => Bound::Included(Key {
                namespace: namespace.clone(),
                name: "".into(),
            }),
        };
        self.objects
            .range((from, Bound::Unbounded))
            .take_while(move |(key, _)| all || key.namespace == namespace)
    }

    /// Whether nothing was written after a revision.
    pub(crate) fn unchanged_since(&self, revision: u64) -> bool {
        self.log
            .after(revision)
            .is_some_and(|mut changes| changes.next().is_none())
    }

    /// All objects as they were at a revision; `None` if that is compacted.
    pub(crate) fn at(&self, revision: u64) -> Option<BTreeMap<Key, Arc<Stored>>> {
        let mut objects = self.objects.clone();
        for change in self.log.after(revision)?.rev() {
            match &change.old {
                Some(old) => objects.insert(change.key.clone(), old.clone()),
                None => objects.remove(&change.key),
            };
        }
        Some(objects)
    }
}
