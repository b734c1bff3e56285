//! Decisions of controllers that spread the pods of workloads over subsets of nodes.
//!
//! Invariants: one folder per controller, none of which knows a sibling; workloads and nodes are read and never
//! written; pods get metadata only, and are deleted only while they wait for a node; pure functions; only the
//! runtime acts.

pub mod workloadspread;
