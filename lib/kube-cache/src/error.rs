//! Why an informer refuses an event.

use crate::{ObjectKey, Version};

/// An event the informer did not apply. The stored objects are unchanged in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The list is older than what this informer has observed, or than its user requires: the response is from a stale
    /// server. List again ([`Input::Refused`](crate::Input::Refused)).
    #[error("list at version {listed} is older than {required}, which is already known to exist")]
    StaleList {
        /// Version of the refused list.
        listed: Version,
        /// The version a list must reach.
        required: Version,
    },
    /// The list has a new enough version but contains an object in an older state than the stored one, so it is not a
    /// snapshot of that version. List again.
    #[error("list at version {listed} holds {key} at {item}, but {stored} was already seen")]
    InconsistentList {
        /// The object with the older state.
        key: ObjectKey,
        /// Version of the refused list.
        listed: Version,
        /// Version of the object inside the list.
        item: Version,
        /// Version of the same incarnation in the store.
        stored: Version,
    },
    /// A page or the end of a list came without [`Event::ListStarted`](crate::Event::ListStarted). This is a bug of the
    /// driver; start a list.
    #[error("list page without a started list")]
    NotListing,
    /// A watch event came before any list was accepted. This is a bug of the driver; start a list.
    #[error("watch event before the first accepted list")]
    NotSynced,
}
