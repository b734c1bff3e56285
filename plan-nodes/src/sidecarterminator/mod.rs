//! SidecarTerminator: sidecars of a pod that runs to its end are stopped when its main containers have ended.
//!
//! Variables mark the sidecars; every other container of the pod is a main container. On a node with an agent,
//! sidecars are stopped by ContainerRecreateRequests. On a virtual node they get the image of a program that ends
//! at once. OpenKruise's manager and its agent follow the same protocol.
//!
//! # What it promises
//! - **Main containers first.** Nothing is stopped before every main container has ended, and in a pod that
//!   restarts those that fail, before every one has ended well. A pod without main containers is left alone.
//! - **The pod ends.** A sidecar that runs anew, or that a request did not stop, is stopped by a further request,
//!   after pauses that double. A warning event names sidecars that cannot be stopped.
//! - **One request at a time.** A request is created when those before it have ended. One that has done what it
//!   could and has not ended is ended first.
//! - **In turn.** Sidecars whose exit codes do not count are stopped last. Before that the pod gets the phase that
//!   its main containers have earned, which the kubelet does not change any more.
//! - **Only what differs.** A patch names the images that change, or the phase and one condition. An event follows
//!   a write.
//! - **Takeover.** Requests that OpenKruise created count. The first request has the name that OpenKruise gives it.
//!
//! # How a plan is made
//! [`plan()`] sorts the sidecars ([`groups`]), judges the requests that exist ([`requests`]), and builds the writes
//! ([`writes`]).

mod groups;
mod plan;
pub mod reasons;
mod requests;
mod snapshot;
mod warnings;
mod writes;

pub use plan::{concerns, plan};
pub use snapshot::Snapshot;
