//! UnitedDeployment: one workload for each subset of nodes, created from one template.
//!
//! [`UnitedDeployment`] is the hub version, `v1beta1`. It is read from raw JSON with
//! [`UnitedDeployment::from_value`] and never written back: writes are patches of its status.

use crate::resource::ResourceId;

mod convert;
mod crd;
mod types;

pub use crd::KIND;
pub use types::{
    Adaptive, Child, ScheduleStrategy, Subset, SubsetStatus, Topology, UnitedDeployment,
    UnitedDeploymentSpec, UnitedDeploymentStatus, UpdateStrategy, workload_template,
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);
