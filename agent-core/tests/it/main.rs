//! The agent in a small world: a runtime, an API server and a clock that are made up. Names of tests say which
//! acceptance scenario they show.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines
)]

mod containers;
mod disk;
mod images;
mod malformed;
#[cfg(target_os = "linux")]
mod measurements;
mod probes;
mod properties;
mod recreate;
mod secrets;
mod takeover;
mod world;
mod writes;
