//! Input and output of an informer.

use std::sync::Arc;

use crate::Version;

/// One step of a list or a watch. Apply them in the order in which the server sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// A list starts. Pages of an earlier, unfinished list are dropped.
    ListStarted,
    /// The next page of the list.
    Page(Vec<T>),
    /// The last page was applied. All pages together are the resource at `version`.
    ListDone {
        /// `metadata.resourceVersion` of the list.
        version: Version,
    },
    /// Watch event `ADDED`.
    Added(T),
    /// Watch event `MODIFIED`.
    Modified(T),
    /// Watch event `DELETED`: the object was deleted, or no longer matches the watch's selector.
    Deleted(T),
    /// Watch event `BOOKMARK`: everything up to this version has been delivered.
    Bookmark(Version),
}

/// One change of one object, for event handlers that compare before and after.
#[derive(Debug, PartialEq, Eq)]
pub struct Delta<T> {
    /// The object before; `None` when it is new.
    pub old: Option<Arc<T>>,
    /// The object after; `None` when it is deleted.
    pub new: Option<Arc<T>>,
}

impl<T> Delta<T> {
    /// The object as last known: the new state, or for a deletion the last state seen.
    pub fn latest(&self) -> Option<&Arc<T>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

// Not derived: a derive would require `T: Clone`, and `Arc<T>` does not need it.
impl<T> Clone for Delta<T> {
    fn clone(&self) -> Self {
        Self {
            old: self.old.clone(),
            new: self.new.clone(),
        }
    }
}
