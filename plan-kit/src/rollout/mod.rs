//! How the pods of a workload come to its revision and stay in service, whatever its kind.
//!
//! A [`Rollout`] is read once from a specification; every pod of the workload passes through it:
//! 1. [`refresh()`] makes new and updated pods available, and continues updates that were begun.
//! 2. [`Rollout::remove`] and [`Rollout::recreate`] delete a pod, or hold it for its `preDelete` hook.
//! 3. [`Updater`] updates pods to a revision, in place where the change allows.
//! 4. [`interrupted`] gives pods back what an update took from them that broke off.
//! 5. [`images`] has nodes pull images before their pods change.
//! 6. [`Ask`](crate::ledger::Ask) has budgets let pods become unavailable; pods that they keep are left out.
//!    [`Trying`](crate::trial::Trying) has the server say whether it takes the new pods, before the first old one
//!    is deleted for them.
//! 7. [`Drift`] tells pods that do not run what their labels say.
//! 8. [`progressing`] and [`stalled`] report whether the rollout gets anywhere, [`unreadable`] that there can be none;
//!    [`Stage`] says how far it is.
//!
//! Which pods are added, removed and updated, and how many at a time, each kind decides for itself.

mod broken;
pub mod conditions;
mod deletion;
mod drift;
pub mod images;
pub mod interrupted;
mod path;
mod pod;
mod policy;
pub mod progressing;
mod refresh;
pub mod released;
mod spec;
mod stage;
pub mod stalled;
mod truncate;
pub mod unreadable;
mod updater;
mod words;

use kruise_api::names::events::Reason;

use crate::events;

pub use broken::worth_waiting;
pub use drift::{Drift, Revisions};
pub use pod::{Class, Pod};
pub use policy::Policy;
pub use refresh::{add_ready, refresh};
pub use spec::{Budget, Options, Rollout, Strategy};
pub use stage::{Course, Stage};
pub use updater::{Updater, updated_in_place};
pub use words::{Deletions, Words};

/// Reasons of the events that rollouts write.
pub const REASONS: &[&Reason] = &[
    &events::SUCCESSFUL_IN_PLACE,
    &events::FAILED_IN_PLACE,
    &events::INVALID_STATE,
    &events::CREATED_PULL_JOB,
    &events::FAILED_PULL_JOB,
    &events::RESIZE_INFEASIBLE,
    &events::CONTAINER_REPLACED,
    &events::STALLED,
];
