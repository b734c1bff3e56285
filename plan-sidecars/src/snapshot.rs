//! What a plan is made from.

use std::sync::Arc;

use kruise_api::sidecarset::SidecarSet;
use kruise_plan_kit::{Explain, Memory, ledger::Budgets};
use kruise_views::{PodView, RevisionView};

use crate::repairs::Repairs;

/// One snapshot of a SidecarSet and everything that belongs to it.
pub struct Snapshot<'a> {
    /// The set.
    pub set: &'a SidecarSet,
    /// `apiVersion` for owner references: that of the version on the wire.
    pub api_version: &'a str,
    /// Where revisions are kept: the manager's namespace.
    pub namespace: &'a str,
    /// Pods whose list of injected sets names this one, active or not, of any namespace, in any order.
    pub pods: &'a [Arc<PodView>],
    /// Pods that may be meant and do not name this set in that list, active or being deleted: at least those that its
    /// selectors match. None where no pod is injected at all.
    pub not_injected: &'a [Arc<PodView>],
    /// Is there a set that is injected into this pod instead, as a canary of this one?
    pub has_canary: &'a dyn Fn(&PodView) -> bool,
    /// What was tried for uninjected pods.
    pub repairs: &'a Repairs,
    /// Revisions in [`Self::namespace`] that carry the set's name and are its own, or nobody's.
    pub revisions: &'a [Arc<RevisionView>],
    /// Does the set's namespace selector match the namespace of this name? Only asked if there is a selector.
    pub in_namespace: &'a dyn Fn(&str) -> bool,
    /// Is there a set of this name?
    pub is_set: &'a dyn Fn(&str) -> bool,
    /// The budgets of its pods.
    pub budgets: Budgets<'a>,
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}
