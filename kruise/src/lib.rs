//! The library of the `kruise` executable: one module for each subcommand, and the controllers of the manager.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bundle;
pub mod explain;
pub mod inject;
pub mod restart;
pub mod version;
