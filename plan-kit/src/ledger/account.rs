//! A budget, and what is charged to it.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::{
    names::podunavailablebudget::NO_PROTECT,
    podunavailablebudget::{Entries, PodUnavailableBudget, PodUnavailableBudgetStatus},
};
use kruise_views::PodView;
use serde_json::Value;

use crate::injected::is_injected;

use super::{
    Gates, Operation,
    count::{desired_available, status_patch},
    entries::{DISRUPTED, UPDATED, is_of, left},
    is_available,
    operation::is_protected,
};

/// Most entries of a budget. A status with more would grow out of what a server stores.
const MOST_ENTRIES: usize = 2000;

/// May a pod become unavailable?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes, and it costs nothing.
    Free(Free),
    /// Yes: it is charged already, and the charge lasts long enough.
    Recorded,
    /// Yes, once the status is written: it was charged already, and the charge is renewed.
    Renewed,
    /// Yes, once the status is written.
    Charged,
    /// No.
    Refused(Refusal),
}

/// Why a pod costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free {
    /// A feature gate is off.
    Gate,
    /// The pod says that no budget protects it.
    Exempt,
    /// It is unavailable already.
    Unavailable,
    /// The budget ignores pods with its labels.
    Ignored,
    /// The budget keeps no pods at all.
    Off,
    /// The budget does not limit this operation.
    Unprotected,
}

impl Free {
    /// In plain words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gate => "the feature gate for it is off",
            Self::Exempt => "an annotation of the pod says that no budget protects it",
            Self::Unavailable => "the pod is unavailable already",
            Self::Ignored => "ignoredPodSelector matches the pod",
            Self::Off => "the budget keeps no pods",
            Self::Unprotected => "protectOperations does not name it",
        }
    }
}

/// Why a pod must stay available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// As many pods are unavailable as may be.
    Exhausted,
    /// The status has too many entries.
    TooManyEntries,
}

impl Refusal {
    /// The message. Clients match on it.
    pub fn message(self, budget: &str) -> String {
        let why = match self {
            Self::Exhausted => "pub unavailable allowed is negative",
            Self::TooManyEntries => {
                "DisruptedPods and UnavailablePods map too big - too many unavailable not confirmed by PUB controller"
            }
        };
        format!("podunavailablebudget.policy.kruise.io \"{budget}\" is forbidden: {why}")
    }
}

/// A budget with what was charged to it since it was read.
#[derive(Clone, Debug)]
pub struct Account<'b> {
    budget: &'b PodUnavailableBudget,
    status: PodUnavailableBudgetStatus,
}

impl<'b> Account<'b> {
    /// A budget as it is stored. If its specification is newer than its numbers, the pods that were counted then
    /// are compared with what it says now. So a pod is never judged by a specification that is over.
    pub fn of(budget: &'b PodUnavailableBudget) -> Self {
        let mut account = Self {
            budget,
            status: budget.status.clone(),
        };
        if account.is_outdated() && account.is_counted() {
            let total = budget.protected_total().unwrap_or(account.status.total_replicas);
            account.recompute(total);
        }
        account
    }

    /// A budget whose pods were just counted.
    pub fn counted(budget: &'b PodUnavailableBudget, status: PodUnavailableBudgetStatus) -> Self {
        Self { budget, status }
    }

    /// The budget.
    pub fn budget(&self) -> &'b PodUnavailableBudget {
        self.budget
    }

    /// The status with the charges.
    pub fn status(&self) -> &PodUnavailableBudgetStatus {
        &self.status
    }

    /// Have its pods ever been counted? If not they are to be counted before anything is decided.
    pub fn is_counted(&self) -> bool {
        self.status.observed_generation > 0
    }

    /// Were its pods counted, and none expected? Without effect on a budget that has a number of its own.
    pub fn expects_none(&self) -> bool {
        self.is_counted() && self.status.total_replicas == 0 && self.budget.protected_total().is_none()
    }

    fn is_outdated(&self) -> bool {
        self.status.observed_generation < self.budget.metadata.generation
    }

    /// The number of pods that there should be is another one by now. Without effect where the budget has a number
    /// of its own.
    pub fn expect(&mut self, total: i32) {
        if self.budget.protected_total().is_none() && self.status.total_replicas != total {
            self.recompute(total);
        }
    }

    /// What was charged since the last count stays charged. Without effect if the specification cannot be read.
    fn recompute(&mut self, total: i32) {
        let Ok(desired) = desired_available(self.budget, total) else {
            return;
        };
        let status = &mut self.status;
        let allowed = |desired: i32| status.current_available.saturating_sub(desired).max(0);
        let charged = allowed(status.desired_available).saturating_sub(status.unavailable_allowed);
        let allowed = allowed(desired).saturating_sub(charged.max(0)).max(0);
        status.total_replicas = total;
        status.desired_available = desired;
        status.unavailable_allowed = allowed;
    }

    /// Decides about one pod, which names this budget, and charges it if that is needed. The rules are in their
    /// order, and the first that fits decides.
    pub fn ask(&mut self, pod: &PodView, operation: Operation, gates: Gates, now: Timestamp) -> Decision {
        if let Some(free) = self.free(pod, operation, gates, now) {
            return Decision::Free(free);
        }
        if let Some(recorded) = self.recorded(pod, operation, now) {
            return recorded;
        }
        if self.status.unavailable_allowed <= 0 {
            return Decision::Refused(Refusal::Exhausted);
        }
        if self.status.disrupted_pods.len() + self.status.unavailable_pods.len() > MOST_ENTRIES {
            return Decision::Refused(Refusal::TooManyEntries);
        }
        self.status.unavailable_allowed -= i32::from(!is_injected("ChargeUnpaid"));
        self.record(pod, operation, now);
        Decision::Charged
    }

    /// The merge patch with what was charged; `None` if nothing was.
    pub fn patch(&self) -> Option<Value> {
        status_patch(&self.budget.status, &self.status)
    }

    fn free(&self, pod: &PodView, operation: Operation, gates: Gates, now: Timestamp) -> Option<Free> {
        let ignored = || {
            let selector = self.budget.spec.ignored_pod_selector.as_ref();
            selector.is_some_and(|found| !found.is_empty() && found.matches_by(|key| pod.labels.get(key)))
        };
        if !gates.limit(operation) {
            Some(Free::Gate)
        } else if is_exempt(pod) {
            Some(Free::Exempt)
        } else if !is_available(pod, now) {
            Some(Free::Unavailable)
        } else if ignored() {
            Some(Free::Ignored)
        } else if self.is_off() {
            Some(Free::Off)
        } else if !is_protected(self.budget, operation, gates) {
            Some(Free::Unprotected)
        } else {
            None
        }
    }

    /// Nothing is to be kept: none have to be available, or the workload is gone or scaled to zero, and pods that
    /// are left must not be kept by a fixed number.
    fn is_off(&self) -> bool {
        let status = &self.status;
        let is_empty = status.total_replicas == 0 && !self.is_outdated();
        status.desired_available == 0 || is_empty
    }

    /// What is charged already. A charge that covers less than half of the time that the change may take to be seen is
    /// renewed: the pod would be counted as available before that.
    fn recorded(&mut self, pod: &PodView, operation: Operation, now: Timestamp) -> Option<Decision> {
        let covers = |entries: &Entries, life: Duration| {
            let since = entries.get(&pod.name)?;
            left(since, life, now).filter(|_| is_of(pod, since))
        };
        let deleted = covers(&self.status.disrupted_pods, DISRUPTED);
        let updated = covers(&self.status.unavailable_pods, UPDATED);
        let left = deleted.into_iter().chain(updated).max()?;
        if left * 2 >= life_of(operation) {
            return Some(Decision::Recorded);
        }
        self.record(pod, operation, now);
        Some(Decision::Renewed)
    }

    fn record(&mut self, pod: &PodView, operation: Operation, now: Timestamp) {
        let entries = if operation.removes() {
            &mut self.status.disrupted_pods
        } else {
            &mut self.status.unavailable_pods
        };
        let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
        entries.0.insert(pod.name.to_string(), second);
    }
}

fn life_of(operation: Operation) -> Duration {
    if operation.removes() { DISRUPTED } else { UPDATED }
}

/// Go's words for true.
fn is_exempt(pod: &PodView) -> bool {
    let text = pod.annotations.get(NO_PROTECT).unwrap_or_default();
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}
