//! BroadcastJob: a pod that runs to its end on every node.
//!
//! [`BroadcastJob`] is read from raw JSON with [`BroadcastJob::from_value`] and never written back. Both versions
//! have the same fields.

use crate::resource::ResourceId;

mod crd;
mod types;

pub use crd::KIND;
pub(crate) use crd::{job_condition, spec};
pub use types::*;

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);
