//! Reviews as the manager's process makes them.

#![allow(clippy::disallowed_methods, reason = "a measurement is of real time")]
#![allow(clippy::unwrap_used, missing_docs)]
#![cfg(target_os = "linux")]

mod measurements;
