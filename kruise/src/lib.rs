//! The library of the `kruise` executable: one module for each subcommand, and the controllers of the manager.

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
