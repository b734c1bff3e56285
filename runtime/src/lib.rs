//! The runtime of the controllers: client, watches, caches, reconcile loop, execution of plans, leader election, events
//! and metrics.
//!
//! State machines without I/O make the decisions ([`executor::Run`], `kube_cache::Reflector`). The async code performs
//! their effects.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod caches;
pub mod client;
mod clock;
pub mod discovery;
mod error;
pub mod events;
pub mod executor;
pub mod follow;
pub mod freshness;
pub mod invalid_spec;
pub mod lease;
pub mod metrics;
mod page_size;
pub mod parsed;
mod served;
pub mod shutdown;
mod store;
pub mod worker;

pub use client::Client;
pub use clock::Clock;
pub use error::{ApiError, Cause, Status};
pub use served::{NotServed, Served};
pub use store::Followable;
