//! What a plan is made from.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::{
    Explain,
    ledger::{Covered, Expected, Live},
};
use kruise_views::PodView;

/// One snapshot of a budget and the pods that it covers.
pub struct Snapshot<'a> {
    /// The budget.
    pub budget: &'a PodUnavailableBudget,
    /// The pods that it covers, in any state and any order.
    pub pods: &'a [Arc<PodView>],
    /// Active pods that name it, and that certainly no budget covers.
    pub uncovered: &'a [Arc<PodView>],
    /// How many there should be.
    pub expected: Expected,
    /// How many more it covers that nobody wants.
    pub unwanted: usize,
    /// Are the pods at least as new as the budget?
    pub as_new_as_budget: bool,
    /// Pods that an earlier plan asked to read, by name.
    pub live: &'a BTreeMap<String, Live>,
    /// May this plan ask to read pods?
    pub may_read: bool,
    /// Is there another budget of this name, and does it cover the pod?
    pub covers: &'a dyn Fn(&str, &PodView) -> bool,
    /// Of all budgets that cover a pod, is this the one that the pod is to name?
    pub is_first: &'a dyn Fn(&PodView) -> bool,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

impl<'a> Snapshot<'a> {
    /// What the ledger counts.
    pub(super) fn covered(&self) -> Covered<'a> {
        Covered {
            pods: self.pods,
            expected: self.expected,
            as_new_as_budget: self.as_new_as_budget,
            live: self.live,
        }
    }
}
