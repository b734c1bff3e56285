//! What a plan is made from.

use std::sync::Arc;

use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::{Explain, Memory, inplace::VerticalScaling, ledger::Budgets};
use kruise_views::{ImageJobView, NodeView, PodView, RevisionView};

use super::claims::Claims;

/// One snapshot of a CloneSet and everything that belongs to it.
pub struct Snapshot<'a> {
    /// The set.
    pub set: &'a CloneSet,
    /// `apiVersion` for owner references: that of the version on the wire.
    pub api_version: &'a str,
    /// Pods controlled by the set's uid, active or not, in any order.
    pub pods: &'a [Arc<PodView>],
    /// Claims controlled by the set's uid.
    pub claims: &'a Claims,
    /// Revisions of the namespace that the set controls, or that nobody controls and its selector matches.
    pub revisions: &'a [Arc<RevisionView>],
    /// Jobs controlled by the set's uid that pull images; none unless [`Options::images_ahead`].
    pub pull_jobs: &'a [Arc<ImageJobView>],
    /// Finds a node; only asked when the template spreads its pods.
    pub node: &'a dyn Fn(&str) -> Option<&'a NodeView>,
    /// The budgets of its pods.
    pub budgets: Budgets<'a>,
    /// Gates and flags.
    pub options: Options,
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// Feature gates and flags that change decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Gate `CloneSetShortHash`: the revision label carries the hash only.
    pub short_hash: bool,
    /// Gate `PreparingUpdateAsUpdate`: when scaling, pods held before an update count as updated.
    pub preparing_update_as_update: bool,
    /// Gate `CloneSetPartitionRollback`: a partition that was raised takes updated pods back to the current revision.
    pub partition_rollback: bool,
    /// Flag `--cloneset-scaling-exclude-preparing-delete`, for all sets.
    pub exclude_preparing_delete: bool,
    /// Gate `PodWebhook`: pods carry the `KruisePodReady` gate.
    pub pod_ready_gate: bool,
    /// Gate `InPlaceUpdateEnvFromMetadata`: a node agent restarts containers whose environment reads a changed label
    /// or annotation, and reports it. Without one such a change restarts nothing, and nobody reports.
    pub environment_from_metadata: bool,
    /// Gate `InPlaceWorkloadVerticalScaling`, and how the server takes it: resources of running containers change
    /// in place.
    pub vertical_scaling: VerticalScaling,
    /// Gate `RecreatePodWhenChangeVCTInCloneSetGate`: pods of other claim templates are not updated in place.
    pub recreate_for_claims: bool,
    /// Gate `PreDownloadImageForInPlaceUpdate`, where ImagePullJobs are served: nodes get new images before their
    /// pods do.
    pub images_ahead: bool,
}

impl Options {
    /// The gates' defaults.
    pub const DEFAULT: Self = Self {
        short_hash: false,
        preparing_update_as_update: false,
        partition_rollback: false,
        exclude_preparing_delete: false,
        pod_ready_gate: true,
        environment_from_metadata: true,
        vertical_scaling: VerticalScaling::Off,
        recreate_for_claims: false,
        images_ahead: false,
    };
}
