//! StatefulSet: keep one pod for each of `replicas` ordinals, with a name and claims of its own, changing it in
//! place where the change allows.
//!
//! # What it promises
//! - **Identity.** There is at most one pod for an ordinal: its name is `<set>-<ordinal>`, and a pod of that name
//!   that is not the set's is waited for. A pod keeps its name, and its claims keep theirs, over every update.
//! - **Order.** In an ordered set nothing new begins while a pod that stays is out of service, except on the lowest
//!   such pod itself, and pods are removed one at a time, the highest first. A pod that waits for a lifecycle hook
//!   is carried on by the step that made it wait, and never blocks that step.
//! - **Availability.** No update and no specified deletion takes an available pod out of service while `maxUnavailable`
//!   pods are. Missing pods are created before others are taken out of service, as `scaleStrategy.maxUnavailable`
//!   allows.
//! - **Partition.** As many pods as `partition` says, counted from the lowest, stay on the current revision, and
//!   come back on it, until all pods are updated.
//! - **Claims.** A pod has its claims before it exists. A claim is given up for deletion only as the retention
//!   policy says, and never while its pod is one of those that stay. Claims only grow.
//! - **Takeover.** Revisions, labels, annotations and conditions are those that OpenKruise writes; objects that are
//!   as they should be are not written.
//!
//! # How a plan is made
//! [`plan()`] computes which ordinals there are ([`Ordinals`]), finds the pods that have them ([`members`]) and the
//! revisions, and reads the specification into a [`Rollout`](kruise_plan_kit::rollout::Rollout). Then it decides in
//! this order: bring pods into service, repair what pods and claims are known by ([`identity`], [`retention`]),
//! create pods ([`scale`], [`create`], [`claims`]), remove those beyond the ordinals, update pods ([`update`]) and
//! their claims ([`resize`]), pull images ahead, report ([`status`]).
//!
//! What is decided, and what is not and why, is written into `Plan::why` when the caller asks for it.

mod claims;
mod create;
mod decision;
mod events;
mod explain;
mod identity;
mod limits;
mod members;
mod outlook;
mod parts;
mod plan;
mod progressing;
pub mod reasons;
mod resize;
mod retention;
mod revisions;
mod scale;
mod snapshot;
mod status;
mod update;

pub use kruise_plan_kit::Explain;
pub use kruise_plan_kit::ordinals::Ordinals;
pub use limits::Limits;
pub use plan::plan;
pub use snapshot::{Find, Options, Snapshot};
