//! Installation: what `kruise manifests` prints, the Helm chart, the definitions, and the check before all of it is
//! removed.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod chart;
pub mod crds;
pub mod manifests;
pub mod uninstall;
