//! Decisions of the controllers of what node agents do: which node pulls which image, when, and what is removed afterwards;
//! which containers are restarted.
//!
//! What agents are to pull is in NodeImages, what they are to restart in ContainerRecreateRequests, and how it goes is in the
//! status of these. OpenKruise's agent and its manager follow the same protocol.
//!
//! Invariants: one folder per controller, none of which knows a sibling; pure functions; only the runtime acts.

pub mod containerrecreaterequest;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod nodeimage;
