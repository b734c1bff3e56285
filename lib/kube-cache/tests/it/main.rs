//! The state machines against a naive model of a server that keeps every version of every object.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod expectations;
mod informer;
mod reflector;
mod server;
mod streamed;
