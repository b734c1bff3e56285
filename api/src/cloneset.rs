//! CloneSet: replicas that need no identity, updated in place where the change allows.
//!
//! [`CloneSet`] is the hub, version `v1beta1`. It is read from raw JSON with [`CloneSet::from_json`], never written
//! back: writes are patches of single fields.

pub mod convert;
pub mod crd;
pub mod defaults;
mod read;
mod types;

pub use read::ReadError;
pub use types::*;
