//! The suite on a real control plane: `cargo xtask e2e`. Without a cluster every test says so and passes.

mod cloneset;
mod cluster;
mod webhooks;
