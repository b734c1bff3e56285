//! Secondary indexes: which objects share a derived key, such as an owner's uid or a node's name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ObjectKey;

/// A derived key of objects of type `T`, declared next to the type:
///
/// ```
/// # use kube_cache::{Cached, Index};
/// # struct Pod { node: Option<Box<str>> }
/// const BY_NODE: Index<Pod> = Index::new("node", |pod| pod.node.iter().cloned().collect());
/// ```
#[derive(Debug)]
pub struct Index<T> {
    name: &'static str,
    keys: fn(&T) -> Vec<Box<str>>,
}

impl<T> Index<T> {
    /// An index called `name` (unique per type) that lists an object under each key that `keys` returns.
    pub const fn new(name: &'static str, keys: fn(&T) -> Vec<Box<str>>) -> Self {
        Self { name, keys }
    }

    /// The name it was declared with.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The keys of one object.
    pub fn keys_of(&self, object: &T) -> Vec<Box<str>> {
        (self.keys)(object)
    }
}

impl<T> Clone for Index<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Index<T> {}

/// The entries of one index.
#[derive(Debug)]
pub(crate) struct IndexTable<T> {
    pub(crate) index: Index<T>,
    entries: BTreeMap<Box<str>, BTreeMap<Arc<ObjectKey>, Arc<T>>>,
}

impl<T> IndexTable<T> {
    pub(crate) fn new(index: Index<T>) -> Self {
        Self {
            index,
            entries: BTreeMap::new(),
        }
    }

    pub(crate) fn insert(&mut self, keys: Vec<Box<str>>, object_key: &Arc<ObjectKey>, object: &Arc<T>) {
        for key in keys {
            self.entries
                .entry(key)
                .or_default()
                .insert(Arc::clone(object_key), Arc::clone(object));
        }
    }

    pub(crate) fn remove(&mut self, keys: &[Box<str>], object_key: &ObjectKey) {
        for key in keys {
            if let Some(objects) = self.entries.get_mut(key) {
                objects.remove(object_key);
                if objects.is_empty() {
                    self.entries.remove(key);
                }
            }
        }
    }

    pub(crate) fn get(&self, key: &str) -> impl Iterator<Item = &Arc<T>> + use<'_, T> {
        self.entries.get(key).into_iter().flat_map(BTreeMap::values)
    }
}
