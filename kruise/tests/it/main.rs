//! Tests of the executable.

#![allow(clippy::disallowed_methods, reason = "processes live in real time")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[cfg(feature = "playground")]
mod admission;
#[cfg(feature = "playground")]
mod agents;
mod api_server;
#[cfg(feature = "playground")]
mod beside;
mod certificates;
mod chart;
mod closed_pipe;
mod command;
mod crds;
#[cfg(feature = "playground")]
mod demo;
#[cfg(feature = "playground")]
mod dry_run;
#[cfg(feature = "playground")]
mod files;
#[cfg(all(feature = "playground", target_os = "linux"))]
mod h2;
#[cfg(feature = "playground")]
mod helm;
#[cfg(feature = "playground")]
mod kubectl;
#[cfg(feature = "playground")]
mod life;
#[cfg(feature = "playground")]
mod managers;
#[cfg(all(feature = "playground", target_os = "linux"))]
mod measurements;
#[cfg(all(feature = "playground", target_os = "linux"))]
mod memory;
mod migrate;
#[cfg(feature = "playground")]
mod older;
#[cfg(feature = "playground")]
mod openkruise;
#[cfg(feature = "playground")]
mod process;
mod reference;
#[cfg(feature = "playground")]
mod release;
#[cfg(feature = "playground")]
mod repairs;
#[cfg(feature = "playground")]
mod samples;
mod start;
#[cfg(feature = "playground")]
mod statefulset;
#[cfg(all(feature = "playground", target_os = "linux"))]
mod strangers;
#[cfg(feature = "playground")]
mod swap;
mod uninstall;
