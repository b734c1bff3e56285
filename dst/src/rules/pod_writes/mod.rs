//! What every manager promises of the pods that it writes, whatever their workload.

pub mod batches;
pub mod claims;
pub mod environment;
pub mod guards;
pub mod readiness;
pub mod resources;

use crate::rules::prelude::*;

/// Judges a write to pods, claims and revisions. `workload` is the resource that owns the pods.
pub fn judge(write: &Write<'_>, mirror: &Mirror, workload: Resource) -> Option<Violation> {
    judge_pods(write, mirror, workload).or_else(|| claims::judge(write, mirror))
}

/// Judges a write to pods and revisions, and whether one to claims is guarded: for a workload whose claims are
/// changed while their pods live.
pub fn judge_pods(write: &Write<'_>, mirror: &Mirror, workload: Resource) -> Option<Violation> {
    guards::judge(write, mirror)
        .or_else(|| readiness::judge(write, mirror, workload))
        .or_else(|| resources::judge(write, mirror))
        .or_else(|| environment::judge(write, mirror))
        .or_else(|| batches::judge(write, mirror))
}
