//! The ledger of a PodUnavailableBudget: what may make its pods unavailable now.
//!
//! Its state is the budget's specification and status, nothing else. Everybody who is about to make a pod unavailable
//! asks first: the webhook for a request, a workload's plan for all pods that it updates or deletes.
//! 1. [`count()`] says how many pods are available, how many must be, and what is left of earlier charges.
//! 2. [`Account::ask`] says whether one pod may become unavailable, and charges it to the budget.
//! 3. [`Account::patch`] is the status with the charges. It is written under the version of the budget that was
//!    asked, and only then the pod is touched. So the API server puts all charges in one order, whoever makes them.
//!    Who loses asks again, with every rule, on the budget as it is then.
//!
//! A plan does this for all its pods at once: [`Charges`].
//!
//! # Charges
//! A charge is an entry in the status: the name of a pod and the time. It covers the time until the change of the
//! pod is seen, and then the pod is no longer counted as available. Entries of deletions and evictions last
//! [`DISRUPTED`], of updates and resizes [`UPDATED`]. A pod with an entry is not counted as available, and nothing
//! more is charged for it. An entry that is older than its pod belongs to an earlier pod of that name, and says
//! nothing about this one.
//!
//! # What it promises
//! Pods that are available and have no entry are never fewer than `desiredAvailable`, unless they fail by
//! themselves. This holds for caches that lag behind each other, as long as none lags behind by more than an entry
//! lasts.

mod account;
mod available;
mod count;
mod covering;
mod entries;
mod operation;
mod plans;
mod resize;
#[cfg(test)]
mod tests;

pub use account::{Account, Decision, Free, Refusal};
pub use available::is_available;
pub use count::{Count, Covered, Live, count, desired_available, status_patch};
pub use covering::{budget_of, covering, covers, expects};
pub use entries::{DISRUPTED, UPDATED};
pub use operation::{Gates, Operation};
pub use plans::{Ask, Budgets, Charges, FindBudget, Found};
pub use resize::operation_of_update;

pub use crate::workloads::{Expected, Workload};
