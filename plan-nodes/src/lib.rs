//! Decisions of the controllers of images and probes on nodes: which node pulls or probes what, when, and what is removed
//! afterwards.
//!
//! Node agents pull and probe. What they are to do is in NodeImages and NodePodProbes, and how it goes is in their status.
//! OpenKruise's agent and its manager follow the same protocol.
//!
//! Invariants: one folder per controller, none of which knows a sibling; pure functions; only the runtime acts.

pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod nodeimage;
pub mod nodepodprobe;
pub mod podprobemarker;
mod probes;
