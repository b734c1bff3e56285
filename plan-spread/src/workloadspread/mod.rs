//! A WorkloadSpread puts the pods of a workload into subsets. The webhook for pods chooses the subset of each new
//! pod, and counts it in the status first; this plan counts the pods that are there, so that the numbers come true.
//!
//! # What it promises
//! - **Counts.** For each subset and version of the pods, the status has the active pods, and how many are still
//!   missing. What the webhook recorded counts until its pod is seen, or for 30 s; a recorded deletion counts for
//!   15 s. A status is written only if it differs, as a patch of what differs, under the version that was counted:
//!   a record of the webhook that is made meanwhile refuses it, and the next count has both.
//! - **Existing pods** that no subset has become part of the one that fits their node best. They get the annotation
//!   and the metadata of its patch, and nothing of their specification changes.
//! - **Order of removal.** Pods of Deployments, ReplicaSets and CloneSets get a deletion cost, so that surplus pods
//!   and the last subsets shrink first; old versions leave the first subset first.
//! - **Adaptive.** A subset whose pods wait too long for a node is marked first. Only when the mark is stored are
//!   these pods deleted, so that the webhook chooses another subset for their successors. It is tried again after
//!   five minutes.
//! - What cannot be read or resolved is reported by an event, and changes nothing.
//! - **Takeover.** What OpenKruise counted and wrote is not written again.
//!
//! # How a plan is made
//! [`plan()`] groups the pods by version and subset ([`groups`]), finds a subset for those without one ([`adopt`]),
//! computes costs ([`cost`]) and counts ([`count`]) with the conditions of an adaptive strategy ([`adaptive`]), and
//! reports.

mod adaptive;
mod adopt;
mod cost;
mod count;
mod events;
mod explain;
mod groups;
mod plan;
pub mod reasons;
mod snapshot;
mod target;

pub use plan::plan;
pub use snapshot::{Nodes, Snapshot};
