//! What a plan is made from.

use kruise_api::containerrecreaterequest::ContainerRecreateRequest;
use kruise_plan_kit::{Memory, ledger::Budgets};
use kruise_views::{NodeView, PodView};

/// One snapshot of a pod, its node, and the requests that were created for it.
pub struct Snapshot<'a> {
    /// The pod.
    pub pod: &'a PodView,
    /// Its node, if there is one of the name that the pod has.
    pub node: Option<&'a NodeView>,
    /// The readable requests that the pod controls, in any order.
    pub requests: &'a [&'a ContainerRecreateRequest],
    /// The budgets that the pod may name.
    pub budgets: Budgets<'a>,
    /// What the last execution taught.
    pub memory: &'a Memory,
}
