//! Decides which priority has the next turn.

use crate::lane::Lane;

/// How urgent a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// The first reconcile of an existing object after a new leader starts. Nothing is known to have changed.
    Initial,
    /// An object changed, or a retry or requeue is due.
    Live,
}

/// Ready keys of both priorities. Live keys are first. After `live_per_initial` live keys in a row were preferred to a
/// ready initial key, that key is next.
#[derive(Clone, Debug)]
pub(crate) struct Ready<K> {
    live: Lane<K>,
    initial: Lane<K>,
    live_per_initial: u32,
    /// Live keys preferred since the last initial key.
    preferred: u32,
}

impl<K> Ready<K> {
    pub(crate) const fn new(live_per_initial: u32) -> Self {
        Self {
            live: Lane::new(),
            initial: Lane::new(),
            live_per_initial,
            preferred: 0,
        }
    }

    pub(crate) fn push(&mut self, priority: Priority, namespace: &str, arrival: u64, key: K) {
        self.lane(priority).push(namespace, arrival, key);
    }

    pub(crate) fn remove(&mut self, priority: Priority, namespace: &str, arrival: u64) {
        self.lane(priority).remove(namespace, arrival);
    }

    pub(crate) fn pop(&mut self) -> Option<K> {
        let initial_is_ready = self.initial.len() > 0;
        if self.live.len() > 0 && !(initial_is_ready && self.preferred >= self.live_per_initial) {
            self.preferred = if initial_is_ready {
                self.preferred.saturating_add(1)
            } else {
                0
            };
            self.live.pop()
        } else {
            self.preferred = 0;
            self.initial.pop()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.live.len().saturating_add(self.initial.len())
    }

    fn lane(&mut self, priority: Priority) -> &mut Lane<K> {
        match priority {
            Priority::Live => &mut self.live,
            Priority::Initial => &mut self.initial,
        }
    }
}
