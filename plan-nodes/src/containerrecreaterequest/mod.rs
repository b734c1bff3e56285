//! ContainerRecreateRequest: restart containers of a running pod.
//!
//! The agent of the pod's node stops the containers, and the kubelet starts them again. This is the half of the
//! manager. OpenKruise's agent and its manager follow the same protocol.
//!
//! # What it promises
//! - **An end.** A request ends when its pod is gone, at its deadline, and when no agent has reported within a
//!   minute. Otherwise the agent ends it. An ended request never begins again, and is deleted when its time to live
//!   is over.
//! - **Nothing of it stays.** A request that has ended, or is being deleted, takes its key from the pod first, then
//!   its finalizer from itself. With the label `active` gone, agents do not watch it any more.
//! - **Out of service first.** With a grace period, the pod is out of service before the condition says so, and the
//!   agent waits for that condition. Its time never changes. A pod without the readiness gate cannot be taken out
//!   of service: there the grace period is only waited for.
//! - **Only what the pod reports.** The agent learns from the status which of the requested containers run anew. An
//!   entry is a container that runs and began after the request was created. Entries do not disappear when
//!   containers end.
//! - **Gone means gone.** A pod that a cache does not have may exist: the API server is asked before a request ends
//!   for that.
//! - **Takeover.** Requests that OpenKruise created or half finished go on where they are. A status that says what
//!   it should is not written.
//!
//! # How a plan is made
//! [`plan()`] decides between the end ([`ended`]), a reason to end now, and work: [`grace`] and [`containers`].
//! [`explain`] has the words for it.

mod containers;
mod ended;
mod explain;
mod grace;
mod plan;
mod pod;
mod snapshot;

pub use plan::{NO_RESPONSE_SECONDS, plan};
pub use snapshot::Snapshot;
