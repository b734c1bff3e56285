//! What a plan is made from.

use std::sync::Arc;

use kruise_api::daemonset::DaemonSet;
use kruise_plan_kit::{
    Explain, Memory,
    fit::{Placed, Placement, for_daemons},
    inplace::VerticalScaling,
    ledger::Budgets,
};
use kruise_views::{ImageJobView, PodView, RevisionView};

/// One snapshot of a DaemonSet and everything that belongs to it.
pub struct Snapshot<'a> {
    /// The set.
    pub set: &'a DaemonSet,
    /// `apiVersion` for owner references: that of the version on the wire.
    pub api_version: &'a str,
    /// All nodes, by name, fitted to [`placement`] of the set.
    pub nodes: &'a [Placed],
    /// What they were fitted to.
    pub placement: &'a Placement,
    /// Pods controlled by the set's uid, in any state, and pods of its namespace without a controller that its selector
    /// matches; in any order.
    pub pods: &'a [Arc<PodView>],
    /// Revisions of the namespace that the set controls, or that nobody controls and its selector matches.
    pub revisions: &'a [Arc<RevisionView>],
    /// Jobs controlled by the set's uid that pull images; none unless [`Options::images_ahead`].
    pub pull_jobs: &'a [Arc<ImageJobView>],
    /// The budgets of its pods.
    pub budgets: Budgets<'a>,
    /// Gates and flags.
    pub options: Options,
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// What a set says about nodes: its template, with the tolerations of daemons.
pub fn placement(set: &DaemonSet) -> Placement {
    Placement::new(&set.spec.template, &for_daemons(&set.spec.template))
}

/// Feature gates and flags that change decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Gate `DaemonSetPruneIneligibleNodes`: pods on nodes that should have none are not counted by updates.
    pub prune_ineligible: bool,
    /// Flag `assign-pods-by-scheduler`: the scheduler binds pods to their nodes.
    pub by_scheduler: bool,
    /// Gate `PodWebhook`: pods carry the `KruisePodReady` gate.
    pub pod_ready_gate: bool,
    /// Gate `InPlaceUpdateEnvFromMetadata`: a node agent restarts containers whose environment reads a changed label
    /// or annotation, and reports it.
    pub environment_from_metadata: bool,
    /// Gate `InPlaceWorkloadVerticalScaling`, and how the server takes it: resources of running containers change
    /// in place.
    pub vertical_scaling: VerticalScaling,
    /// Gate `PreDownloadImageForDaemonSetUpdate`, where ImagePullJobs are served: nodes get new images before their
    /// pods do.
    pub images_ahead: bool,
}

impl Options {
    /// The defaults of gates and flags.
    pub const DEFAULT: Self = Self {
        prune_ineligible: false,
        by_scheduler: true,
        pod_ready_gate: true,
        environment_from_metadata: true,
        vertical_scaling: VerticalScaling::Off,
        images_ahead: false,
    };
}
