//! What a plan is made from.

use std::sync::Arc;

use kruise_api::statefulset::StatefulSet;
use kruise_plan_kit::{Explain, Memory, inplace::VerticalScaling, ledger::Budgets};
use kruise_views::{ClaimView, ImageJobView, PodView, RevisionView, StorageClassView};

/// Finds an object by its name, in the namespace of the set if it has one.
pub type Find<'a, T> = &'a dyn Fn(&str) -> Option<Arc<T>>;

/// One snapshot of a StatefulSet and everything that belongs to it.
pub struct Snapshot<'a> {
    /// The set.
    pub set: &'a StatefulSet,
    /// `apiVersion` for owner references: that of the version on the wire.
    pub api_version: &'a str,
    /// Pods controlled by the set's uid, in any state, and pods without a controller that have such a name as its pods
    /// have; in any order.
    pub pods: &'a [Arc<PodView>],
    /// Finds a pod, whosever it is.
    pub pod: Find<'a, PodView>,
    /// Finds a claim.
    pub claim: Find<'a, ClaimView>,
    /// Finds a storage class; only asked with [`Options::resize_claims`].
    pub class: Find<'a, StorageClassView>,
    /// Revisions of the namespace that the set controls, or that nobody controls and its selector matches.
    pub revisions: &'a [Arc<RevisionView>],
    /// Jobs controlled by the set's uid that pull images; none unless [`Options::images_ahead`].
    pub pull_jobs: &'a [Arc<ImageJobView>],
    /// The budgets of its pods.
    pub budgets: Budgets<'a>,
    /// Gates.
    pub options: Options,
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// Feature gates that change decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Gate `StatefulSetStartOrdinal`: `ordinals.start` is heeded.
    pub start_ordinal: bool,
    /// Gate `StatefulSetAutoDeletePVC`: claims are deleted as `persistentVolumeClaimRetentionPolicy` says.
    pub delete_claims: bool,
    /// Gate `StatefulSetAutoResizePVCGate`: claims grow as `volumeClaimUpdateStrategy` says.
    pub resize_claims: bool,
    /// Gate `PodIndexLabel`: pods have a label with their ordinal.
    pub index_label: bool,
    /// Gate `PreparingUpdateAsUpdate`: pods held before an update count as updated where an order of the user's own is
    /// decided.
    pub preparing_update_as_update: bool,
    /// Gate `PodWebhook`: pods carry the `KruisePodReady` gate.
    pub pod_ready_gate: bool,
    /// Gate `InPlaceUpdateEnvFromMetadata`: a node agent restarts containers whose environment reads a changed label
    /// or annotation, and reports it.
    pub environment_from_metadata: bool,
    /// Gate `InPlaceWorkloadVerticalScaling`, and how the server takes it: resources of running containers change
    /// in place.
    pub vertical_scaling: VerticalScaling,
    /// Gate `PreDownloadImageForInPlaceUpdate`, where ImagePullJobs are served: nodes get new images before their
    /// pods do.
    pub images_ahead: bool,
}

impl Options {
    /// The gates' defaults.
    pub const DEFAULT: Self = Self {
        start_ordinal: false,
        delete_claims: true,
        resize_claims: false,
        index_label: true,
        preparing_update_as_update: false,
        pod_ready_gate: true,
        environment_from_metadata: true,
        vertical_scaling: VerticalScaling::Off,
        images_ahead: false,
    };
}
