//! The executable as its users start it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod demo;
mod files;
mod life;
mod process;
