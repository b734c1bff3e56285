//! Decisions of controllers that record where pods are, so that new pods of the same names come back there.
//!
//! Invariants: one folder per controller, none of which knows a sibling; pods and nodes are read and never written;
//! a record changes only when its pod is Ready; pure functions; only the runtime acts.

pub mod persistentpodstate;
