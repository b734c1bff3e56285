//! HTTP servers of the manager: webhooks, health and metrics; and the certificates and registrations that the API
//! server needs to call the webhooks.
//!
//! The crate knows no workload kinds. Decisions are pure functions over JSON, so that a reconcile that has nothing to
//! change writes nothing.

#![allow(clippy::disallowed_methods, reason = "a server lives in real time")]

mod activity;
pub mod address;
pub mod bodies;
pub mod cert_dir;
pub mod certs;
pub mod changes;
pub mod configuration;
mod connections;
mod error;
pub mod health;
pub mod issue;
pub mod listen;
pub mod metrics;
mod pieces;
pub mod plain;
pub mod renewal;
pub mod review;
mod share;
pub mod tls;
pub mod webhook;
pub mod webhook_controller;

pub use error::Error;
