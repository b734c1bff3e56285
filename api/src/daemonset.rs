//! Advanced DaemonSet: one pod for each node, updated in place, with surge, or in parts.
//!
//! [`DaemonSet`] is the hub version, `v1beta1`. It is read from raw JSON with [`DaemonSet::from_value`] and never
//! written back: writes are patches of single fields.

use crate::resource::ResourceId;

mod crd;
mod types;

pub use crd::KIND;
pub use types::*;

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);
