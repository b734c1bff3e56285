//! An informer with one writer and many readers.

use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::{Cached, Delta, Error, Event, Index, Informer, ObjectKey, Version};

/// An informer shared between its driver and the controllers that read it.
///
/// A panic under the lock does not make the informer unusable: the informer changes one object at a time and derives
/// index keys before it changes a table, so its state stays consistent.
#[derive(Debug)]
pub struct SharedInformer<T> {
    inner: Arc<RwLock<Informer<T>>>,
}

impl<T: Cached> SharedInformer<T> {
    /// Shares a new informer with these indexes.
    pub fn new(indexes: impl IntoIterator<Item = Index<T>>) -> Self {
        Self {
            inner: Arc::new(RwLock::new(Informer::new(indexes))),
        }
    }

    /// [`Informer::apply`] under the write lock. Deltas are returned, not dispatched, so no handler runs under the lock.
    pub fn apply(&self, event: Event<T>) -> Result<Vec<Delta<T>>, Error> {
        self.write(|informer| informer.apply(event))
    }

    /// [`Informer::add_index`].
    pub fn add_index(&self, index: Index<T>) {
        self.write(|informer| informer.add_index(index));
    }

    /// [`Informer::require`].
    pub fn require(&self, version: Version) {
        self.write(|informer| informer.require(version));
    }

    /// [`Informer::forget_history`].
    pub fn forget_history(&self) {
        self.write(Informer::forget_history);
    }

    /// [`Informer::synced_version`].
    pub fn synced_version(&self) -> Option<Version> {
        self.snapshot().synced_version()
    }

    /// [`Informer::observed`].
    pub fn observed(&self) -> Option<Version> {
        self.snapshot().observed()
    }

    /// A consistent view of the store. The writer is blocked while it exists: collect the `Arc`s you need, then drop it.
    /// Never keep it across an await.
    pub fn snapshot(&self) -> Snapshot<'_, T> {
        Snapshot {
            guard: self.inner.read().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn write<R>(&self, change: impl FnOnce(&mut Informer<T>) -> R) -> R {
        change(&mut self.inner.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Clone for SharedInformer<T> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

/// A read lock on an informer: all reads through one snapshot see the same state, and
/// [`Informer::observed`] read through it is the version of that state. The objects may outlive it.
///
/// Snapshots of two resources are from different times; controllers must be correct under that skew.
#[derive(Debug)]
pub struct Snapshot<'a, T> {
    guard: RwLockReadGuard<'a, Informer<T>>,
}

impl<T> Snapshot<'_, T> {
    /// The object under this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.guard.get(key).cloned()
    }

    /// The objects of one namespace in name order.
    pub fn list(&self, namespace: &str) -> Vec<Arc<T>> {
        self.guard.list(namespace).cloned().collect()
    }

    /// The objects indexed under `key`, in object-key order.
    pub fn by_index(&self, index: &Index<T>, key: &str) -> Vec<Arc<T>> {
        self.guard.by_index(index, key).cloned().collect()
    }
}

impl<T> Deref for Snapshot<'_, T> {
    type Target = Informer<T>;

    fn deref(&self) -> &Informer<T> {
        &self.guard
    }
}
