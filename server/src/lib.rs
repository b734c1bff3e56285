//! The admission server's side of the program: HTTP towards the API server, and what the API server must know.
//!
//! The crate knows no workload kinds. Decisions are pure functions over JSON, so that a pass which has nothing to
//! change can be recognised before anything is written.

mod activity;
pub mod bodies;
pub mod cert_dir;
pub mod certs;
pub mod configuration;
mod connections;
mod error;
pub mod health;
pub mod issue;
pub mod listen;
pub mod metrics;
pub mod pass;
mod pieces;
pub mod plain;
pub mod renewal;
pub mod review;
mod share;
pub mod tls;
pub mod webhook;

pub use error::Error;
