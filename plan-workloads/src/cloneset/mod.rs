//! CloneSet: keep `replicas` pods of the wanted template in service, changing them in place where the change allows.
//!
//! # What it promises
//! - **Availability.** No available pod is deleted, recreated or taken out of service while that would leave fewer than
//!   `replicas − maxUnavailable` pods available; unavailable pods go first and free of charge.
//! - **Partition.** At least `partition` pods stay on old revisions as long as they exist; a pod that is replaced while
//!   the partition holds comes back on the revision it had.
//! - **Order.** The order in which pods go and the order in which they change are total: pods, not luck, decide.
//! - **Names.** Pods are named before they are created, from the owner's uid and version: a second plan from the same
//!   snapshot asks for the same pods.
//! - **Claims.** Each pod has claims of its own, created before it. They go when the set deletes the pod for good; those of
//!   a pod that went by other hands wait for its successor, or go with it, as the specification says. No claim of a
//!   live pod is deleted.
//! - **Images ahead.** Where asked for, nodes get the images of a rollout that takes its time before their pods change.
//! - **Takeover.** Revisions, labels, annotations and conditions are those that OpenKruise writes; objects that are
//!   as they should be are not written.
//!
//! # How a plan is made
//! [`plan()`] claims and classifies the pods ([`members`]), finds the update revision ([`history`]), computes the room
//! for action ([`numbers`]), and then decides in this order: bring new and updated pods into service ([`ready`]), add
//! and remove pods ([`scale`]) with their claims ([`claims`]), change pods ([`update`]), pull images ahead ([`images`]), report ([`status`]).
//!
//! What is decided, and what is not and why, is written into `Plan::why` when the observer asks for it.

mod claims;
mod create;
mod history;
mod images;
mod members;
mod mover;
mod numbers;
mod observe;
mod plan;
mod progressing;
mod ready;
mod remove;
mod scale;
mod stall;
mod status;
mod templates;
mod unlabelled;
mod update;
mod volumes;
mod writes;

pub use claims::Claims;
pub use history::Revisions;
pub use members::{Member, Side, Standing};
pub use numbers::{InPlace, Limits, Numbers, Tally, numbers};
pub use observe::{Explain, Observed, Options};
pub use plan::plan;
