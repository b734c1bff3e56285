//! Times of nodes.

use std::time::Duration;

use jiff::Timestamp;

/// A time, moved.
pub(super) fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
