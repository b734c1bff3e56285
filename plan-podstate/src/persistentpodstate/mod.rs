//! A PersistentPodState records on which node each pod of a workload is, so that the next pod of that name is
//! scheduled to a node with the same labels. The webhook for pods reads the records; this plan makes them.
//!
//! # What it promises
//! - A record is made when its pod is Ready, and never changed by one that is not. So a pod that waits for a node
//!   that is gone keeps its record.
//! - On the node of the record, labels that the node lost stay recorded.
//! - A record is forgotten only if its pod is gone and its ordinal is one that the workload does not have any more;
//!   not even then with the policy `WhenDeleted`. While pods still run, scaling to zero forgets nothing.
//! - All records are forgotten when the workload is deleted.
//! - What cannot be read changes nothing.
//! - **Generated objects.** A workload whose annotations ask for it gets a PersistentPodState of its own name. One
//!   that the workload does not control is never written, whatever its name; an event says so.
//! - **Takeover.** Records and generated objects of OpenKruise that are as they should be are not written.
//!
//! # How a plan is made
//! A key is the name of a PersistentPodState, whether it exists or not. [`plan()`] first compares it with what a
//! workload of that name asks for ([`generate`]), then records the pods of its target ([`record`]), and reports
//! ([`status`]).

mod events;
mod explain;
mod generate;
mod plan;
pub mod reasons;
mod record;
mod snapshot;
mod status;

pub use plan::plan;
pub use snapshot::{Generator, Nodes, Snapshot};
