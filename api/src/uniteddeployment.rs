//! UnitedDeployment: one workload for each subset of nodes, created from one template.

mod convert;
mod crd;

pub use crd::KIND;
