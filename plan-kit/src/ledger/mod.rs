//! The ledger of a PodUnavailableBudget: what may make its pods unavailable now.
//!
//! Its state is the budget's specification and status, nothing else. Everybody who is about to make a pod unavailable
//! asks first: the webhook for a request, a workload's plan for all pods that it updates or deletes.
//! 1. [`count()`] says how many pods are available, how many must be, and what is left of earlier charges.
//! 2. [`Account::ask`] says whether one pod may become unavailable, and charges it to the budget.
//! 3. [`Account::patch`] is the status with the charges. It is written under the version of the budget that was asked, and
//!    only then the pod is touched. So the API server puts all charges in one order, whoever makes them. Who loses asks
//!    again, with every rule, on the budget as it is then.
//!
//! A plan does this for all its pods at once: [`Charges`].
//!
//! # Charges
//! A charge is an entry in the status: the name of a pod and the time. It covers the time until the change of the pod is
//! seen, and then the pod is no longer counted as available. Entries of deletions and evictions last [`DISRUPTED`], of
//! updates and resizes [`UPDATED`]. A pod with an entry is not counted as available, and nothing more is charged for it. An
//! entry that is older than its pod belongs to an earlier pod of that name, and says nothing about this one.
//!
//! # What it promises
//! Pods that are available and have no entry are never fewer than `desiredAvailable`, unless they fail by themselves. This
//! holds for caches that lag behind each other, as long as none lags behind by more than an entry lasts.

mod account;
mod available;
mod count;
mod covering;
mod operation;
mod plans;
mod resize;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::names::podunavailablebudget::{RELATED, RELATED_LEGACY};
use kruise_views::PodView;

pub use account::{Account, Decision, Free, Refusal};
pub use available::is_available;
pub use count::{Count, Covered, Live, count, desired_available, status_patch};
pub use covering::{covering, covers, expects};
pub use operation::{Gates, Operation};
pub use plans::{Ask, Budgets, Charges, FindBudget, Found};
pub use resize::operation_of_update;

pub use crate::workloads::{Expected, Workload};

/// How long a deletion or an eviction is expected to be seen.
pub const DISRUPTED: Duration = Duration::from_secs(20);
/// How long an update or a resize is expected to be seen.
pub const UPDATED: Duration = Duration::from_secs(10);

/// The name of the budget that protects a pod, as the pod says.
pub fn budget_of(pod: &PodView) -> Option<&str> {
    let named = |key| pod.annotations.get(key).filter(|name| !name.is_empty());
    named(RELATED).or_else(|| named(RELATED_LEGACY))
}

/// Is this an entry of this very pod, and not of an earlier one of its name? Times have whole seconds.
fn is_of(pod: &PodView, since: Timestamp) -> bool {
    pod.created
        .is_none_or(|created| since.as_second() >= created.as_second())
}

/// For how long an entry lasts; `None` if it has expired.
fn left(since: Timestamp, life: Duration, now: Timestamp) -> Option<Duration> {
    let end = since.as_millisecond().saturating_add(life.as_millis() as i64);
    let left = u64::try_from(end.saturating_sub(now.as_millisecond())).ok()?;
    (left > 0).then(|| Duration::from_millis(left))
}
