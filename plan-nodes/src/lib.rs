//! Decisions of the controllers of what node agents do: which node pulls or probes what, when, and what is removed
//! afterwards; which containers are restarted, and which are stopped with their job.
//!
//! What agents are to do is in NodeImages, NodePodProbes and ContainerRecreateRequests, and how it goes is in the
//! status of these. OpenKruise's agent and its manager follow the same protocol.
//!
//! Invariants: one folder per controller, none of which knows a sibling; pure functions; only the runtime acts.

pub mod containerrecreaterequest;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod nodeimage;
pub mod nodepodprobe;
pub mod podprobemarker;
mod probes;
pub mod sidecarterminator;
