//! Decisions of the workload controllers: what to create, change and delete, from what is seen.
//!
//! Invariants: one folder per controller, none of which knows a sibling; pure functions; only the runtime acts.

pub mod advancedcronjob;
pub mod broadcastjob;
pub mod cloneset;
pub mod daemonset;
pub mod ephemeraljob;
mod json;
pub mod launch;
pub mod pod_readiness;
pub mod podunavailablebudget;
pub mod statefulset;
