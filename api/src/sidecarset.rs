//! SidecarSet: containers that are injected into new pods and updated in place later.

mod convert;
mod crd;
mod types;

pub use crd::KIND;
pub use types::*;
