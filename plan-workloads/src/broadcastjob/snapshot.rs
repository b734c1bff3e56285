//! What a plan is made from.

use std::sync::Arc;

use kruise_api::broadcastjob::BroadcastJob;
use kruise_plan_kit::{
    Explain, Memory,
    fit::{Placed, Placement},
    ledger::Budgets,
};
use kruise_views::PodView;

/// One snapshot of a BroadcastJob and everything that belongs to it.
pub struct Snapshot<'a> {
    /// The job.
    pub job: &'a BroadcastJob,
    /// `apiVersion` for owner references: that of the version on the wire.
    pub api_version: &'a str,
    /// All nodes, by name, fitted to [`placement`] of the job.
    pub nodes: &'a [Placed],
    /// What they were fitted to.
    pub placement: &'a Placement,
    /// Pods controlled by the job's uid, in any state and order.
    pub pods: &'a [Arc<PodView>],
    /// The budgets of its pods.
    pub budgets: Budgets<'a>,
    /// Gates and flags.
    pub options: Options,
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// What a job says about nodes: its template, and that they are large enough for what it requests.
pub fn placement(job: &BroadcastJob) -> Placement {
    Placement::of(&job.spec.template).with_requests(&job.spec.template)
}

/// Feature gates and flags that change decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Flag `assign-bcj-pods-by-scheduler`: the scheduler binds pods to their nodes.
    pub by_scheduler: bool,
    /// Gate `PodWebhook`: pods carry the `KruisePodReady` gate.
    pub pod_ready_gate: bool,
}

impl Options {
    /// The defaults of gates and flags.
    pub const DEFAULT: Self = Self {
        by_scheduler: true,
        pod_ready_gate: true,
    };
}
