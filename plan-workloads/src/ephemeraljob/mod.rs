//! EphemeralJob: add ephemeral containers to pods that run, and report how they end.
//!
//! # What it promises
//! - **Once for each pod.** A pod that holds a container of the job gets none again. The variable `KRUISE_EJOB_ID` of a
//!   container has the uid of its job, and ephemeral containers cannot be changed or removed. So a lost answer or a
//!   manager that ends before the status is written leads to no second one.
//! - **Replicas.** No more pods get the containers than `replicas` says. Pods that have them come first, then the
//!   older.
//! - **Parallelism.** A pod gets the containers only while fewer pods than `parallelism` hold ones that have not ended.
//! - **An end.** The job ends when each of its pods has succeeded or failed, or at its deadline, which is computed
//!   from what is stored. An ended job adds nothing, and is deleted when its time to live is over.
//! - **Takeover.** Containers that OpenKruise added are the job's. Its finalizer is removed from jobs that are
//!   being deleted, and never added: Kubernetes cannot remove ephemeral containers.
//!
//! # How a plan is made
//! [`plan()`] finds the pods of the job (`targets`) and its *course* (`course`): ended, done, late, paused, or
//! running. The course decides what is written (`add`) and reported (`status`, in the words of `events`).

mod add;
mod course;
mod events;
mod explain;
mod plan;
pub mod reasons;
mod snapshot;
mod status;
mod targets;

pub use plan::plan;
pub use snapshot::Snapshot;
