//! Reviews as the manager's process makes them, and what they say to inputs that people have reported.

#![allow(clippy::disallowed_methods, reason = "a measurement is of real time")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "everything here is a test"
)]
#![cfg(target_os = "linux")]

mod cases;
mod measurements;
