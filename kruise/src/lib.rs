//! What the one executable is made of: the manager, what it prints for an installation, its explanations, and a
//! playground for all of it.

pub mod explain;
mod gates;
pub mod manager;
pub mod manifests;
pub mod playground;
