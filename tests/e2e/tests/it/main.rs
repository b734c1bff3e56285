//! The suite on a real control plane: `cargo xtask e2e`. Without a cluster every test says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "everything here is a test; clippy only sees the functions marked as such"
)]

mod cloneset;
mod cluster;
mod crash;
mod likeness;
mod old_crd;
mod rights;
mod stored;
mod takeover;
mod templates;
mod webhooks;
