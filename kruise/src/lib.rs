//! What the one executable is made of: the manager, what it prints for an installation, and its explanations.

pub mod explain;
mod gates;
pub mod manager;
pub mod manifests;
