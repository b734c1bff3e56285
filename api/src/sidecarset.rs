//! SidecarSet: containers that are injected into new pods and updated in place later.

use crate::resource::ResourceId;

mod convert;
mod crd;
mod types;

pub use crd::KIND;
pub use types::*;

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);
