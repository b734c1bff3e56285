//! The state machines against a naive model of a server: every version of every object, kept for ever.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod gate;
mod informer;

mod reflector;
mod world;
