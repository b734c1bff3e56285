//! The servers over real sockets.

#![allow(clippy::disallowed_methods, reason = "sockets live in real time")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod client;
mod client_certificates;
mod frames;
mod measurements;
mod plain;
mod stop;
mod unread;
mod webhook;
