//! The shell around the planners: talks to the API server, applies plans, follows resources.
//!
//! Decisions are made by machines without I/O ([`executor::Run`], `kube_cache::Reflector`); what is async here only
//! performs their effects.

pub mod caches;
pub mod client;
mod clock;
pub mod discovery;
mod error;
pub mod events;
pub mod executor;
pub mod follow;
pub mod freshness;
pub mod lease;
pub mod metrics;
mod served;
pub mod shutdown;
pub mod worker;

pub use client::Client;
pub use clock::Clock;
pub use error::{ApiError, Status};
pub use served::{NotServed, Served};
