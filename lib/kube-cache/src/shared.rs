//! An informer with one writer and many readers.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use crate::{Cached, Delta, Error, Event, Index, Informer, ObjectKey, Version};

/// An informer shared between its driver and the controllers that read it.
///
/// A panic under the lock does not make the informer unusable: the informer changes one object at a time and derives
/// index keys before it changes a table, so its state stays consistent.
pub struct SharedInformer<T> {
    inner: Arc<RwLock<Informer<T>>>,
    before: Arc<OnceLock<Before<T>>>,
}

/// Is shown an event before it is applied.
type Before<T> = Box<dyn Fn(&Event<T>) + Send + Sync>;

impl<T: Cached> SharedInformer<T> {
    /// Shares a new informer with these indexes.
    pub fn new(indexes: impl IntoIterator<Item = Index<T>>) -> Self {
        Self {
            inner: Arc::new(RwLock::new(Informer::new(indexes))),
            before: Arc::default(),
        }
    }

    /// [`Informer::apply`] under the write lock. Deltas are returned, not dispatched, so no handler runs under the
    /// lock.
    pub fn apply(&self, event: Event<T>) -> Result<Vec<Delta<T>>, Error> {
        if let Some(before) = self.before.get() {
            before(&event);
        }
        self.write(|informer| informer.apply(event))
    }

    /// Shows each event to `before` while the store is still in the state that the event leaves, without a lock.
    /// Events that the store does not apply, such as replays, are shown, too. There is one such reader: a second
    /// one is ignored.
    pub fn before_each(&self, before: impl Fn(&Event<T>) + Send + Sync + 'static) {
        let _is_first = self.before.set(Box::new(before));
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

    /// A consistent view of the store. The writer is blocked while it exists: collect the `Arc`s you need, then
    /// drop it. Never keep it across an await.
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
            before: Arc::clone(&self.before),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedInformer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.inner;
        f.debug_struct("SharedInformer")
            .field("inner", inner)
            .finish_non_exhaustive()
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
