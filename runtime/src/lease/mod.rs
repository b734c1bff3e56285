//! Leader election on a `coordination.k8s.io/v1` Lease, as client-go does it, so that a Go manager and this one hand
//! over to each other.
//!
//! # What it promises
//! - Another holder is believed until its record has not changed for the longer of its lease duration and ours, *by our
//!   own clock*; clocks of different machines are never compared.
//! - Who has not renewed within the renew deadline stops leading before anybody else may start. The deadline runs from
//!   when a renewal was sent, because that is the earliest that others can have seen it.
//! - A graceful stop gives the lease back, so that the next leader need not wait.

mod driver;
mod elector;

pub use driver::{Ending, Found, find, identity, lead};
pub use elector::{Decision, Elector, Record, Settings};
