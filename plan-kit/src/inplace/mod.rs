//! Changing a running pod to a new template instead of replacing it.
//!
//! 1. [`diff()`] says whether the step from one template to another can be taken in place, and what it consists of.
//! 2. [`UpdateSpec`] builds the patches that begin it (`begin`): readiness off, then other resources, then the
//!    change with its progress annotation. In this order: had the annotation come before the resources, and nothing
//!    after it, then containers that have what they always had would seem to have arrived.
//! 3. [`progress`] is the state machine in between (`machine`): it waits for the grace period, for the changed
//!    containers to run what the specification asks for (`arrival`), and changes one batch of containers after the
//!    other (`batch`).
//! 4. [`finish()`] builds the patch that puts the pod back into service.
//!
//! The annotations on the wire are in `state`, `record` and `grace`. What an update left behind that broke off is in
//! `leftover`.
//!
//! Invariants: only keys that differ between the two templates are touched, so what other controllers wrote on the pod
//! stays; a change that restarts nothing never takes the pod out of service.

mod arrival;
mod batch;
mod begin;
mod diff;
mod finish;
#[cfg(test)]
pub(crate) mod fixture;
mod grace;
mod leftover;
mod machine;
mod record;
mod resources;
mod state;

pub use arrival::is_pending;
pub use begin::{Patches, RevisionLabels, UpdateLabel, UpdateSpec};
pub use diff::{Change, NotInPlace, diff};
pub use finish::{Finish, finish};
pub use leftover::{Amounts, record_of_arrival, was_given_back};
pub use machine::{Progress, progress};
pub use resources::{Resize, VerticalScaling, fold, is_infeasible, refusal};
pub(crate) use resources::{keeps_class_of_service, restarts_for};
pub use state::{Batch, ImageStatus, UpdateState, read_state};
