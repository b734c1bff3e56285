//! What the one executable is made of: the manager, what it prints for an installation, its explanations, pods as
//! the webhook would make them, and a playground for all of it.

pub mod controllers;
pub mod crds;
pub mod explain;
pub mod gates;
pub mod inject;
pub mod leader;
mod lookup;
pub mod manager;
pub mod manifests;
pub mod migrate;
#[cfg(feature = "playground")]
pub mod playground;
