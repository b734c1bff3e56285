//! Coalescing windows: a key that changes often becomes ready at most once in each window.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// For each key pushed in coalescing mode, the time before which it must not become ready again in that mode.
#[derive(Clone, Debug)]
pub(crate) struct Windows<K> {
    ends: BTreeMap<K, Duration>,
    by_end: BTreeSet<(Duration, K)>,
}

impl<K: Ord + Clone> Windows<K> {
    pub(crate) const fn new() -> Self {
        Self {
            ends: BTreeMap::new(),
            by_end: BTreeSet::new(),
        }
    }

    /// Opens a window of a key that became ready: its next coalesced push waits until `end`.
    pub(crate) fn open(&mut self, key: &K, end: Duration) {
        let known = self.ends.get(key).copied();
        if let Some(known) = known {
            if end <= known {
                return;
            }
            self.by_end.remove(&(known, key.clone()));
        }
        self.ends.insert(key.clone(), end);
        self.by_end.insert((end, key.clone()));
    }

    /// End of the key's open window.
    pub(crate) fn end(&self, key: &K) -> Option<Duration> {
        self.ends.get(key).copied()
    }

    /// Removes the windows that ended, so that idle keys use no memory.
    pub(crate) fn close(&mut self, now: Duration) {
        while let Some((end, _)) = self.by_end.first()
            && *end <= now
            && let Some((_, key)) = self.by_end.pop_first()
        {
            self.ends.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_extended_never_shortened_and_removed_at_their_end() {
        let millis = Duration::from_millis;
        let mut windows = Windows::new();
        windows.open(&"a", millis(50));
        windows.open(&"a", millis(20));
        assert_eq!(windows.end(&"a"), Some(millis(50)));
        windows.open(&"a", millis(80));
        windows.close(millis(79));
        assert_eq!(windows.end(&"a"), Some(millis(80)));
        windows.close(millis(80));
        assert_eq!(
            (windows.end(&"a"), windows.ends.len(), windows.by_end.len()),
            (None, 0, 0)
        );
    }
}
