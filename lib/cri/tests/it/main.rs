//! The client against a server that answers what a test says, and against a containerd.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod calls;
mod containerd;
mod failures;
mod golden;
mod measurements;
mod registry;
mod sandbox;
mod server;
