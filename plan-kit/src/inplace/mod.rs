//! Changing a running pod to a new template instead of replacing it.
//!
//! 1. [`diff()`] says whether the step from one template to another can be taken in place, and what it consists of.
//! 2. [`UpdateSpec`] builds the patches that begin it: readiness off, then other resources, then the change with its progress
//!    annotation. In this order: had the annotation come before the resources, and nothing after it, then containers
//!    that have what they always had would seem to have arrived.
//! 3. [`progress`] says whether the containers run what the specification asks for.
//!    Between the two it may wait for its grace period, and for one batch of containers before the next.
//! 4. [`finish()`] builds the patch that puts the pod back into service.
//!
//! Invariants: only keys that differ between the two templates are touched, so what other controllers wrote on the pod
//! stays; a change that restarts nothing never takes the pod out of service.

mod batch;
mod completion;
mod diff;
mod finish;
#[cfg(test)]
pub(crate) mod fixture;
mod grace;
mod leftover;
mod patches;
mod record;
mod resources;
mod resume;
mod state;

pub use completion::{Progress, is_pending, progress};
pub use diff::{Change, NotInPlace, diff};
pub use finish::{Finish, finish};
pub use leftover::{Amounts, record_of_arrival, was_given_back};
pub use patches::{Patches, RevisionLabels, UpdateLabel, UpdateSpec};
pub use resources::{Resize, VerticalScaling, fold, is_infeasible, refusal};
pub(crate) use resources::{keeps_class_of_service, restarts_for};
pub use state::{Batch, ImageStatus, UpdateState, read_state};
