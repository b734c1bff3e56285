//! SidecarSet: containers that are put into pods as they are made, and updated in place later.

mod convert;
mod crd;
mod types;

pub use crd::KIND;
pub use types::*;
