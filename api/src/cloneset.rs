//! CloneSet: replicas without stable names, updated in place if the change allows it.
//!
//! [`CloneSet`] is the hub version, `v1beta1`. It is read from raw JSON with [`CloneSet::from_json`] and never written
//! back: writes are patches of single fields.

use crate::resource::ResourceId;

pub mod convert;
pub mod crd;
pub mod defaults;
mod read;
mod types;

pub use crd::KIND;
pub use read::ReadError;
pub use types::*;

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);
