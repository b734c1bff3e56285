//! Keys that become ready later.

use std::collections::BTreeSet;
use std::time::Duration;

/// Keys ordered by due time, then by arrival.
#[derive(Clone, Debug)]
pub(crate) struct Delayed<K> {
    keys: BTreeSet<(Duration, u64, K)>,
}

impl<K: Ord> Delayed<K> {
    pub(crate) const fn new() -> Self {
        Self {
            keys: BTreeSet::new(),
        }
    }

    pub(crate) fn insert(&mut self, due: Duration, arrival: u64, key: K) {
        self.keys.insert((due, arrival, key));
    }

    pub(crate) fn remove(&mut self, due: Duration, arrival: u64, key: K) {
        self.keys.remove(&(due, arrival, key));
    }

    /// The first key due at `now`.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<K> {
        if self.next_due()? > now {
            return None;
        }
        self.keys.pop_first().map(|(_, _, key)| key)
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.keys.first().map(|(due, ..)| *due)
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}
