//! Bytes and rules that Go clients of Kubernetes see.
//!
//! Revision hashes, object names, percentages and quantities are part of a cluster's stored state: computing one of
//! them differently from the Go code that stored it means replacing every pod of a workload. This crate reproduces
//! that arithmetic and those texts exactly, and does not depend on any workload.
//!
//! * [`IntOrString`]: `3` or `"30%"`, and the two ways such a value becomes a count;
//! * [`quantity`]: resource quantities without floating point;
//! * [`json`]: JSON text as Go's encoder writes it;
//! * [`hash`], [`sha256`], [`revision`], [`container`]: hashes, revision hashes and names, hashes of containers;
//! * [`pod_template`]: pod templates and volume claims as Go writes them, the input of those hashes;
//! * [`duration`], [`flags`]: durations and command lines as Go programs read them;
//! * [`schedule`]: cron schedules and their next activations;
//! * [`image`]: references to images.

pub mod container;
pub mod duration;
mod error;
pub mod flags;
pub mod hash;
pub mod image;
mod int_or_string;
pub mod json;
pub mod pod_template;
pub mod quantity;
pub mod revision;
pub mod schedule;
pub mod sha256;

pub use error::Error;
pub use int_or_string::{IntOrString, Rounding, partition};
