//! UnitedDeployment: one workload for each subset of nodes, made from one template.

mod convert;
mod crd;

pub use crd::KIND;
