//! Reviews as the manager's process makes them.

#![allow(clippy::unwrap_used, missing_docs)]
#![cfg(target_os = "linux")]

mod measurements;
