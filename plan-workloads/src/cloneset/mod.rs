//! CloneSet: keep `replicas` pods of the wanted template in service, changing them in place where the change allows.
//!
//! # What it promises
//! - **Availability.** No available pod is deleted, recreated or taken out of service while that would leave fewer than
//!   `replicas − maxUnavailable` pods available; unavailable pods go first and free of charge.
//! - **Partition.** At least `partition` pods stay on old revisions as long as they exist; a pod that is replaced while
//!   the partition holds comes back on the revision it had.
//! - **Order.** The order in which pods are deleted and the order in which they change are total: pods, not luck,
//!   decide.
//! - **Names.** Pods are named before they are created, from the owner's uid and version: a second plan from the same
//!   snapshot creates the same pods.
//! - **Claims.** Each pod has claims of its own, created before it. They are deleted when the set deletes the pod
//!   for good; those of a pod that was deleted by others wait for its successor, or are deleted with it, as the
//!   specification says. No claim of a live pod is deleted.
//! - **Images ahead.** Where asked for, nodes get the images of a rollout that takes its time before their pods change.
//! - **Takeover.** Revisions, labels, annotations and conditions are those that OpenKruise writes; objects that are
//!   as they should be are not written.
//!
//! # How a plan is made
//! [`plan()`] claims the pods ([`pods`]), finds the update revision ([`history`]), and reads the specification into a
//! [`Rollout`](kruise_plan_kit::rollout::Rollout), through which all pods pass ([`parts`]). It computes the room
//! for action ([`numbers`]), and then decides in this order: bring new and updated pods into service, add
//! ([`create`]) and remove pods ([`scale`]) with their claims ([`claims`]), update pods ([`update`]), pull images
//! ahead, report ([`status`]).
//!
//! What is decided, and what is not and why, is written into `Plan::why` when the caller asks for it.

mod claims;
mod create;
mod events;
mod explain;
mod history;
mod numbers;
mod outlook;
mod parts;
mod plan;
mod pods;
mod progressing;
pub mod reasons;
mod scale;
mod snapshot;
mod status;
mod update;
mod volumes;

pub use claims::Claims;
pub use kruise_plan_kit::Explain;
pub use numbers::{Counts, InPlace, Limits, Numbers, numbers};
pub use plan::plan;
pub use snapshot::{Options, Snapshot};
