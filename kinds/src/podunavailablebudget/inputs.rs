//! The input of a plan of a budget: its pods and the budgets beside it, read from the caches or given.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_api::{meta::LabelSelector, podunavailablebudget::PodUnavailableBudget};
use kruise_plan_kit::{
    Explain, Memory, Need, Plan, ResourceId,
    ledger::{Live, budget_of, covering},
    workloads::{PodsOf, Source, Workload, of_selector, of_wanted_target},
};
use kruise_plan_workloads::podunavailablebudget::{Snapshot, plan};
use kruise_views::PodView;

use super::keys::{All, is_uncovered, may_cover, owners, readable, target_of};

/// The objects that a plan of one budget depends on.
pub struct Inputs<'a> {
    budget: &'a PodUnavailableBudget,
    pods: PodsOf,
    /// Pods that name it, and that no budget covers.
    uncovered: Vec<Arc<PodView>>,
    /// Budgets of its namespace that can be read, itself included.
    budgets: Vec<&'a PodUnavailableBudget>,
    known: Source<'a>,
    as_new_as_budget: bool,
    live: BTreeMap<String, Live>,
    may_read: bool,
}

impl<'a> Inputs<'a> {
    /// From the pods and the budgets of its namespace, and what is known of the workloads there.
    pub fn new(
        budget: &'a PodUnavailableBudget,
        pods: &[Arc<PodView>],
        budgets: &'a All,
        known: Source<'a>,
    ) -> Self {
        let covered = pods_of(budget, pods, known);
        let budgets: Vec<_> = readable(budgets).collect();
        Self {
            budget,
            uncovered: uncovered(budget, pods, &covered, &budgets, known),
            pods: covered,
            budgets,
            known,
            as_new_as_budget: false,
            live: BTreeMap::new(),
            may_read: true,
        }
    }

    /// Adds the pods that the plan before this one asked to read.
    #[must_use]
    pub fn with_reads(mut self, memory: &Memory) -> Self {
        for (need, object) in &memory.read {
            let Need::Live(ResourceId::PODS, _, name) = need else {
                continue;
            };
            // A pod that cannot be parsed is not in the cache either.
            let pod = object
                .as_ref()
                .and_then(|object| serde_json::from_value(object.clone()).ok());
            self.live.insert(name.clone(), pod.map(Arc::new));
        }
        self.may_read = self.live.is_empty();
        self
    }

    /// The pods are at least as new as the budget.
    #[must_use]
    pub fn as_new_as_budget(self, as_new_as_budget: bool) -> Self {
        Self {
            as_new_as_budget,
            ..self
        }
    }

    /// A workload that has yet to be read. Until then nothing is to be planned.
    pub fn missing(&self) -> Option<&Workload> {
        self.pods.missing.first()
    }

    /// Workloads that only a cache says nobody wants the pods of. Until they are read nothing is to be planned.
    pub fn doubted(&self) -> impl Iterator<Item = &Workload> {
        self.pods.doubted.iter()
    }

    /// The pods that the budget covers.
    pub fn pods(&self) -> &[Arc<PodView>] {
        &self.pods.pods
    }

    /// Plans the budget.
    pub fn plan(&self, explain: Explain, now: Timestamp) -> Plan {
        let snapshot = Snapshot {
            budget: self.budget,
            pods: &self.pods.pods,
            uncovered: &self.uncovered,
            expected: self.pods.expected,
            unwanted: self.pods.unwanted,
            as_new_as_budget: self.as_new_as_budget,
            live: &self.live,
            may_read: self.may_read,
            covers: &|name, pod| self.is_covered_by(name, pod),
            is_first: &|pod| self.is_first(pod),
            explain,
        };
        plan(&snapshot, now)
    }

    /// Does another budget of this name cover the pod, or may it, as far as is known?
    fn is_covered_by(&self, name: &str, pod: &PodView) -> bool {
        let named = self.budgets.iter().find(|budget| budget.metadata.name == name);
        let Some(named) = named.filter(|named| named.metadata.deletion_timestamp.is_none()) else {
            return false;
        };
        let owners = owners(pod, self.budgets.iter().copied(), self.known);
        may_cover(named, pod, &owners, self.known)
    }

    /// Of the budgets that cover the pod, is this the one that the pod is to name? A pod that only the scale of the
    /// target selects may be one that no budget covers otherwise.
    fn is_first(&self, pod: &PodView) -> bool {
        let owners = owners(pod, self.budgets.iter().copied(), self.known);
        let first = covering(self.budgets.iter().copied(), &owners.workloads, &pod.labels);
        first.is_none_or(|first| first.metadata.name == self.budget.metadata.name)
    }
}

/// The pods that a budget covers, of all pods of its namespace.
fn pods_of(budget: &PodUnavailableBudget, pods: &[Arc<PodView>], known: Source<'_>) -> PodsOf {
    match (target_of(budget), &budget.spec.selector) {
        (Some(target), _) => of_wanted_target(&target, pods, known),
        (None, selector) => {
            let none = LabelSelector::default();
            of_selector(selector.as_ref().unwrap_or(&none), pods, known)
        }
    }
}

/// The active pods that name the budget, and that certainly no budget covers.
fn uncovered(
    budget: &PodUnavailableBudget,
    pods: &[Arc<PodView>],
    covered: &PodsOf,
    budgets: &[&PodUnavailableBudget],
    known: Source<'_>,
) -> Vec<Arc<PodView>> {
    // Both are in one order.
    let mut covered = covered.pods.iter().peekable();
    let uncovered = pods.iter().filter(|pod| {
        let is_covered = covered.next_if(|covered| Arc::ptr_eq(covered, pod)).is_some();
        !is_covered
            && pod.is_active()
            && budget_of(pod) == Some(budget.metadata.name.as_str())
            && is_uncovered(pod, budgets, known)
    });
    uncovered.cloned().collect()
}
