//! Leader election on a `coordination.k8s.io/v1` Lease as in client-go, so that a Go manager and this one can
//! compete for the same lease.
//!
//! # Guarantees
//! - Another holder's lease is expired once its record has not changed for the longer of its lease duration and ours,
//!   measured *by our own clock*. Clocks of different machines are never compared.
//! - A leader that has not renewed within the renew deadline stops before another one may start. The deadline runs from
//!   when a renewal was sent, because that is the earliest time at which others can have observed it.
//! - A graceful stop releases the lease, so that the next leader does not wait for its expiry.

mod driver;
mod elector;

pub use driver::{ALL as REASONS, Ending, Found, find, identity, lead};
pub use elector::{Decision, Elector, Record, Settings};
