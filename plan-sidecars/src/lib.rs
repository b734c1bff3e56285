//! SidecarSet: upgrade the sidecars that were injected into pods of others, in place, a few at a time.
//!
//! # What it promises
//! - **Little is touched.** Of a pod that exists only images of its sidecars change, with the annotations that
//!   record it and those the set patches. Everything else that changes in a set shows in new pods alone, and the
//!   pods that cannot be upgraded get a condition.
//! - **Availability.** A ready pod is upgraded only while fewer than `maxUnavailable` pods are out of service
//!   because of the set; a pod that is out of service costs nothing.
//! - **Partition.** At least `partition` pods stay as they are, whatever else keeps pods back.
//! - **Hot upgrades.** Of two twins the working one is never restarted for an upgrade; it idles once the other serves.
//! - **Write lock.** Sets that share a pod change it one after the other ([`WriteLocks`]); every write of a pod is
//!   for the version of it that was read.
//! - **Repair.** Pods that were created without the sidecars they should have are reported ([`uninjected()`]), and
//!   recreated by their owners where the set asks for it: within `maxUnavailable`, and never in a loop
//!   ([`Repairs`]).
//! - **Nobody waits for one pod.** A pod that is gone, refused or broken holds up no other.
//! - **Takeover.** Revisions, annotations and conditions are those that OpenKruise writes; pods that are as they
//!   should be are not written. A set that is deleted leaves its pods as they are.
//!
//! # How a plan is made
//! [`plan()`] finds the revision of the specification ([`history`]), classifies the pods ([`pod`]), ends hot upgrades
//! ([`hot`]), chooses pods ([`choose`]) and changes them ([`upgrade`]), reports on pods whether they can be upgraded
//! ([`condition`]), handles uninjected pods ([`repair`]), and reports ([`status`]).

mod choose;
mod condition;
mod consistency;
mod history;
mod hot;
mod plan;
mod pod;
pub mod reasons;
mod repair;
mod repairs;
mod sidecars;
mod snapshot;
mod status;
mod uninjected;
mod upgrade;
mod write_lock;

pub use kruise_plan_kit::Explain;
pub use plan::{learn, plan};
pub use repairs::Repairs;
pub use snapshot::Snapshot;
pub use uninjected::uninjected;
pub use write_lock::WriteLocks;
