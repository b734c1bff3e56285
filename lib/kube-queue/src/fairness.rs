//! Which priority has the next turn.

use crate::lane::Lane;

/// How urgent a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Nothing changed as far as is known: initial list, periodic resync.
    Resync,
    /// Something changed.
    Live,
}

/// Ready keys of both priorities. Live keys are first, but each ages the resync lane: after `live_per_resync` live keys
/// in a row were preferred to a waiting resync key, that one is taken.
#[derive(Clone, Debug)]
pub(crate) struct Ready<K> {
    live: Lane<K>,
    resync: Lane<K>,
    live_per_resync: u32,
    /// Live keys preferred since the last resync key.
    preferred: u32,
}

impl<K> Ready<K> {
    pub(crate) const fn new(live_per_resync: u32) -> Self {
        Self {
            live: Lane::new(),
            resync: Lane::new(),
            live_per_resync,
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
        let resync_waits = self.resync.len() > 0;
        if self.live.len() > 0 && !(resync_waits && self.preferred >= self.live_per_resync) {
            self.preferred = if resync_waits {
                self.preferred.saturating_add(1)
            } else {
                0
            };
            self.live.pop()
        } else {
            self.preferred = 0;
            self.resync.pop()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.live.len().saturating_add(self.resync.len())
    }

    fn lane(&mut self, priority: Priority) -> &mut Lane<K> {
        match priority {
            Priority::Live => &mut self.live,
            Priority::Resync => &mut self.resync,
        }
    }
}
