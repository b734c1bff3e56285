//! The library of the `kruise` executable: one module for each subcommand, and the controllers of the manager.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bundle;
mod charges;
pub mod chart;
mod command;
pub mod controllers;
pub mod crds;
pub mod daemon;
mod dependants;
pub mod explain;
pub mod gates;
pub mod inject;
mod json;
pub mod leader;
mod lookup;
pub mod manager;
pub mod manifests;
pub mod migrate;
pub mod output;
mod pages;
#[cfg(feature = "playground")]
pub mod playground;
pub mod preflight;
pub mod profile;
mod refusals;
pub mod restart;
mod settings;
mod templates;
pub mod uninstall;
pub mod version;
pub mod workloads;
