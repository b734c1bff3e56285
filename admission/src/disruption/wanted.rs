//! Pods that nobody wants, and budgets that were counted before there was anything to count: what the numbers of a
//! budget do not say.

use kruise_plan_kit::ledger::{Account, Decision, Free, desired_available, expects};
use kruise_plan_kit::workloads::{Ownership, Wanted};
use kruise_views::PodView;

use super::known::Known;
use crate::lookup::Belief;

/// Why the decision of a budget is not the answer.
pub(super) enum Overruled {
    /// Nobody wants the pod.
    Unwanted,
    /// The pods of the budget have yet to be counted.
    Uncounted,
    /// It depends on what has yet to be looked up.
    Missing,
}

/// Is a decision overruled? What costs nothing asks nobody; a charge asks for what a cache doubts, and a refusal for
/// all.
pub(super) fn overruled(
    pod: &PodView,
    account: &Account<'_>,
    decision: Decision,
    known: &impl Known,
) -> Option<Overruled> {
    let belief = match decision {
        Decision::Free(Free::Off) if is_new(account) => return Some(Overruled::Uncounted),
        Decision::Free(Free::Off) if account.expects_none() => Belief::Scale,
        Decision::Renewed | Decision::Charged => Belief::Uncached,
        Decision::Refused(_) => Belief::Wanting,
        Decision::Free(_) | Decision::Recorded => return None,
    };
    let is_off = belief == Belief::Scale;
    if let Some(ownership) = Ownership::of(pod) {
        match known.wanted(&pod.namespace, &ownership, belief) {
            None | Some(Wanted::NotYet(..)) => return Some(Overruled::Missing),
            Some(Wanted::No) => return Some(Overruled::Unwanted),
            // It was counted when nobody wanted any.
            Some(Wanted::Yes(owners)) if is_off => {
                let is_expected = expects(account.budget(), &owners, &pod.labels);
                return is_expected.then_some(Overruled::Uncounted);
            }
            Some(Wanted::Yes(_)) => {}
        }
    }
    if belief != Belief::Wanting {
        return None;
    }
    match known.is_ending(&pod.namespace) {
        None => Some(Overruled::Missing),
        Some(true) => Some(Overruled::Unwanted),
        Some(false) => None,
    }
}

/// A new budget keeps nothing before its pods are counted. One that cannot be counted never does.
fn is_new(account: &Account<'_>) -> bool {
    let budget = account.budget();
    !account.is_counted()
        && budget.metadata.deletion_timestamp.is_none()
        && desired_available(budget, i32::MAX).is_ok_and(|desired| desired > 0)
}
