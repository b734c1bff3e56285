//! Decisions of controllers that keep objects in many namespaces: which namespaces get a copy, and what becomes of
//! copies.
//!
//! Invariants: one folder per controller, none of which knows a sibling; what others control is never written;
//! contents are read when they are needed and not kept; pure functions; only the runtime acts.

pub mod resourcedistribution;
