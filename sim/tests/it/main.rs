//! The API as clients see it.

#![allow(clippy::disallowed_methods, reason = "sockets live in real time")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod admission;
mod clients;
mod components;
mod conversion;
mod crud;
mod differential;
mod http;
mod kubectl;
mod log;
#[cfg(target_os = "linux")]
mod measurements;
mod openapi;
mod practice;
mod protobuf;
mod runtimes;
mod server;
mod socket;
#[path = "../transcript/mod.rs"]
mod transcript;
mod watch;
mod webhooks;
