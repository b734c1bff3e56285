//! Decisions of the controllers of images on nodes: which node pulls what, when, and what is removed afterwards.
//!
//! Node agents pull. What they are to pull is in NodeImages, and how it goes is in their status. OpenKruise's agent and its
//! manager follow the same protocol.
//!
//! Invariants: one folder per controller, none of which knows a sibling; pure functions; only the runtime acts.

pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod nodeimage;
