//! The executable as its users start it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod admission;
mod api_server;
mod certificates;
mod command;
mod conversion;
mod crds;
mod demo;
mod files;
#[cfg(target_os = "linux")]
mod h2;
mod life;
mod migrate;
mod process;
mod reference;
mod start;
