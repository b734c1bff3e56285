//! When to reconcile what again.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// At most one time per key; what is due comes in order of time, then key.
#[derive(Clone, Debug)]
pub(crate) struct Timers<K> {
    at: BTreeMap<K, Timestamp>,
    queue: BTreeSet<(Timestamp, K)>,
}

impl<K: Ord + Clone> Timers<K> {
    pub(crate) fn new() -> Self {
        Self {
            at: BTreeMap::new(),
            queue: BTreeSet::new(),
        }
    }

    /// Sets, moves or (with `None`) cancels a key's time.
    pub(crate) fn set(&mut self, key: K, at: Option<Timestamp>) {
        if let Some(old) = self.at.remove(&key) {
            self.queue.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.at.insert(key.clone(), at);
            self.queue.insert((at, key));
        }
    }

    pub(crate) fn has(&self, key: &K) -> bool {
        self.at.contains_key(key)
    }

    /// Takes the first key whose time has come.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<K> {
        let (at, key) = self.queue.first()?.clone();
        if at > now {
            return None;
        }
        self.set(key.clone(), None);
        Some(key)
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.queue.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, ToSpan};

    use super::Timers;

    #[test]
    fn what_is_due_comes_in_order_of_time_and_once() {
        let start = Timestamp::UNIX_EPOCH;
        let at = |seconds: i64| start + seconds.seconds();
        let mut timers = Timers::new();
        for (key, seconds) in [("b", 2), ("a", 2), ("c", 1), ("d", 9)] {
            timers.set(key, Some(at(seconds)));
        }
        timers.set("c", Some(at(3)));
        timers.set("b", None);
        assert_eq!(timers.next(), Some(at(2)));
        assert_eq!(timers.pop(at(1)), None);
        assert_eq!(
            [timers.pop(at(5)), timers.pop(at(5)), timers.pop(at(5))],
            [Some("a"), Some("c"), None]
        );
        assert!(timers.has(&"d") && !timers.has(&"a"));
        assert_eq!(timers.next(), Some(at(9)));
    }
}
