//! DaemonSet: keep one pod on each node that should have one, changing it in place where that is asked for and the
//! change allows.
//!
//! # What it promises
//! - **One pod a node.** A node that should have a pod and has none gets one; of several for the same node one
//!   stays. With surge, an old and a new pod are there side by side during an update. A node that had a pod is not
//!   left without one because of the partition.
//! - **Availability.** No update takes an available pod out of service while `maxUnavailable` nodes lack an
//!   available pod, and none is begun that would have no successor: the pod of a node that should have none is not
//!   updated. With surge no Ready pod is deleted before its successor is available. Old pods that are not Ready are
//!   replaced whatever the limit.
//! - **Partition and selector.** As many nodes as `partition` says keep their old pods, the first by name, and so
//!   do nodes that `selector` leaves out. Percentages are of the nodes that should have a pod now.
//! - **Budgets.** A pod is taken out of service only if its PodUnavailableBudget lets it go, whatever the reason.
//!   One that the budget keeps does not take the place of others.
//! - **Failures.** A pod that has ended is replaced, at intervals that double from a second to a quarter of an hour.
//! - **Takeover.** Revisions, labels and annotations are those that OpenKruise writes; pods that are as they should
//!   be are not written, whichever version of the set their owner references name.
//!
//! # How a plan is made
//! [`plan()`] finds the revisions, sorts the pods by their nodes ([`places`]), and reads the specification into a
//! [`Rollout`](kruise_plan_kit::rollout::Rollout). Then it decides in this order: bring pods into service, create
//! and delete pods so that each node has the ones it should have ([`manage`]), update old ones ([`update`],
//! [`surge`]), pull images ahead, report ([`status`]).
//!
//! What is decided, and what is not and why, is written into `Plan::why` when the caller asks for it: about pods,
//! about nodes that have none, and about the set.

mod create;
mod creations;
mod decision;
mod events;
mod explain;
mod limits;
mod manage;
mod outlook;
mod parts;
mod places;
mod plan;
mod progressing;
pub mod reasons;
mod revisions;
mod snapshot;
mod status;
mod steps;
mod surge;
mod update;

pub use kruise_plan_kit::{Explain, fit::Placed};
pub use limits::Limits;
pub use plan::plan;
pub use snapshot::{Options, Snapshot, placement};
