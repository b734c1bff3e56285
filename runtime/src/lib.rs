//! The shell around the planners: talks to the API server, applies plans, follows resources.
//!
//! Decisions are made by machines without I/O ([`executor::Run`], `kube_cache::Reflector`); what is async here only
//! performs their effects.

pub mod client;
mod error;
pub mod executor;
pub mod worker;
pub mod follow;

pub use client::Client;
pub use error::{ApiError, Status};
