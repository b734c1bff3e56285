//! The bounded history of one resource.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Key, Stored};

/// One change. Either side may be absent, not both.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    /// Absent for a creation.
    pub(crate) old: Option<Arc<Stored>>,
    /// For a deletion, the last state, with the deletion's revision.
    pub(crate) new: Arc<Stored>,
    pub(crate) deleted: bool,
}

/// Changes in the order of their revisions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Changes up to this revision are gone.
    compacted: u64,
    changes: VecDeque<Change>,
}

impl Log {
    pub(super) fn push(&mut self, change: Change, window: usize) {
        self.changes.push_back(change);
        while self.changes.len() > window {
            if let Some(gone) = self.changes.pop_front() {
                self.compacted = gone.revision;
            }
        }
    }

    pub(super) fn clear(&mut self, revision: u64) {
        self.changes.clear();
        self.compacted = revision;
    }

    /// The newest revision that cannot be watched from any more is one less.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Changes after a revision; `None` if some of them are gone.
    pub(crate) fn after(&self, revision: u64) -> Option<impl DoubleEndedIterator<Item = &Change>> {
        if revision < self.compacted {
            return None;
        }
        let from = self.changes.partition_point(|change| change.revision <= revision);
        Some(self.changes.range(from..))
    }
}
