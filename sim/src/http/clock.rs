//! The only clock of this crate.

#![allow(clippy::disallowed_methods, reason = "here the world follows real time")]

use jiff::Timestamp;

/// The time.
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}
