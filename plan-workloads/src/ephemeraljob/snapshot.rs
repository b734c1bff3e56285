//! What a plan is made from.

use std::sync::Arc;

use kruise_api::ephemeraljob::EphemeralJob;
use kruise_plan_kit::{Explain, Memory};
use kruise_views::PodView;

/// One snapshot of an EphemeralJob and the pods that it selects.
pub struct Snapshot<'a> {
    /// The job.
    pub job: &'a EphemeralJob,
    /// `apiVersion` of the job on the wire.
    pub api_version: &'a str,
    /// Pods of its namespace that its selector matches, in any state and order.
    pub pods: &'a [Arc<PodView>],
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}
