//! The agent as a process: against a container runtime at a unix socket and an API server on loopback, both simulated.

#![allow(clippy::disallowed_methods, reason = "a process lives in real time")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod api;
mod containers;
mod credentials;
mod health;
mod images;
mod node;
mod outages;
mod probes;
mod recreate;
mod runtime;
#[cfg(target_os = "linux")]
mod size;
mod wire;
