//! The queue against a naive model, and a test for each of its guarantees.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod guarantees;
mod model;
