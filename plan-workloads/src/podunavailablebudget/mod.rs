//! PodUnavailableBudget: the numbers of a budget, and the pods that name it.
//!
//! # What it promises
//! - The status is a [count](kruise_plan_kit::ledger::count()) of the pods that the budget covers, written under
//!   the version of the budget that was counted: what a webhook or a plan charged in between is never lost.
//! - Entries of pods whose change was not seen in time are dropped, and the status is whole again.
//! - A pod that the budget covers names it, so that every request for the pod is reviewed. A pod that names a
//!   budget which does not exist or does not cover it is given the right one, or none if no budget covers it.
//! - Pods are otherwise left alone.
//!
//! * `snapshot`: the input; `plan`: the decisions; `links`: the annotations of pods; `events`: what is reported.

mod events;
mod links;
mod plan;
pub mod reasons;
mod snapshot;

pub use plan::plan;
pub use snapshot::Snapshot;
