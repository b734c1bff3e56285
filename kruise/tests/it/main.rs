//! The binary as its user meets it: what it says and how it ends when it cannot work.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "everything here is a test; clippy only sees the functions marked as such"
)]

mod api_server;
mod certificates;
mod command;
mod start;
