//! A ResourceDistribution keeps a copy of one Secret or ConfigMap in every namespace that it selects.
//!
//! # What it promises
//! - An object that the ResourceDistribution does not control is never written. It is a conflict, which the status
//!   and an event report, and which ends when that object is deleted.
//! - Copies are found, and owned, by their controller reference. Owners that others add to a copy stay, and so do
//!   labels and annotations that the manifest does not name.
//! - What decides about a write is the contents: data, type, immutability, and the labels and annotations of the
//!   manifest. Copies of OpenKruise with the same contents are not written.
//! - Caches have no contents. A copy is read when its version is not one that was read or written before
//!   ([`kruise_plan_kit::Known`]), and only a limited number of copies at a time.
//! - A namespace that is no longer selected loses its copy. When the ResourceDistribution is deleted, the garbage
//!   collector deletes all of them by their owner references: there is no finalizer.
//! - A failure in one namespace holds back no other.

mod contents;
mod events;
mod explain;
mod plan;
pub mod reasons;
mod snapshot;
mod source;
mod status;
mod targets;
mod writes;

pub use plan::plan;
pub use snapshot::{Copies, Snapshot};
pub use source::Source;
pub use targets::selects;
