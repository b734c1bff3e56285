//! Advanced StatefulSet: pods with stable names, updated in place and in parallel, with reserved ordinals.
//!
//! [`StatefulSet`] is the hub version, `v1beta1`. It is read from raw JSON with [`StatefulSet::from_value`] and never
//! written back: writes are patches of single fields.

use crate::resource::ResourceId;

mod crd;
mod types;

pub use crd::{KIND, v1beta1};
pub use types::*;

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);
