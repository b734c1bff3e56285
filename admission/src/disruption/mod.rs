//! Requests that make pods unavailable: deletions, evictions, updates and resizes, at `/validate-pod`.
//!
//! [`decide`] finds out which pod a request is about and what happens to it (`subject`), and asks the
//! [ledger](kruise_plan_kit::ledger) of the budget that the pod names. It reads the cluster through [`Known`] and
//! writes nothing: what is charged it returns as a [`Charge`], which is to be stored before the request passes.
//! Only then a deletion that a WorkloadSpread counts is recorded (`spread`), so that none is that a budget refuses.
//!
//! # What it promises
//! - A pod is judged as the server has it: deletions and updates carry the stored pod, and an eviction that would
//!   pass only because a cache says that the pod is not ready reads the pod again.
//! - A pod that nobody wants passes (`wanted`): its workload is gone, is being deleted, or wants no pods, or its
//!   namespace is being deleted.
//! - A pod that does not exist, or whose budget does not exist, passes: the server answers better.
//! - A dry run in any form is decided alike, and charges nothing.
//! - A refused eviction is 429, so that clients such as `kubectl drain` try again. Everything else is 403.

mod conditions;
mod known;
mod reach;
mod spread;
mod subject;
#[cfg(test)]
mod tests;
mod wanted;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::injected::is_injected;
use kruise_plan_kit::ledger::{Account, Decision, Free, Gates, Operation, budget_of};
use kruise_views::PodView;
use serde::Deserialize as _;

use crate::lookup::{Lookup, Lookups, ObjectName};
pub use crate::protocol::Charge;
use crate::protocol::Write;
use crate::refused::Refused;
use crate::{Options, Outcome, Reason, Request, Response};
pub use conditions::Requests;
pub(crate) use conditions::conditions;
pub use known::{Found, Known};
use known::{Results, stored_as};
pub use reach::{Evictions, condition};
use subject::{Subject, subject};
use wanted::Overruled;

/// Path of the webhooks.
pub const PATH: &str = "/validate-pod";
/// Name of the webhook for pods.
pub const PODS: &str = "vpod.kb.io";
/// Name of the webhook for evictions.
pub const EVICTIONS: &str = "vpodeviction.kb.io";

/// How long the controller may take to count the pods of a new budget, before it is looked at again.
const COUNT: Duration = Duration::from_millis(50);

/// The outcome of a review.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The request passes.
    Pass(Passed),
    /// The request passes once this is stored.
    Charge(Charge),
    /// The request is turned down by a budget.
    Refuse(Box<Refused>, Response),
    /// The request, or the budget of its pod, cannot be read.
    Unreadable(Response),
    /// The pods of this budget have never been counted, or not since there are any.
    Uncounted(ObjectName),
    /// It depends on an object that has yet to be looked up.
    Missing,
}

/// Why a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It makes no pod unavailable, or a gate is off.
    NotLimited,
    /// There is no such pod.
    NoPod,
    /// No budget protects the pod.
    NoBudget,
    /// It costs nothing.
    Free(Free),
    /// Nobody wants the pod.
    Unwanted,
    /// It is charged already.
    Recorded,
    /// It would be charged, but it is a dry run.
    DryRun,
}

/// Reviews a request with the results so far.
pub(crate) fn review(request: &Request, options: Options, lookups: &Lookups) -> Outcome {
    let known = Results::new(lookups);
    match decide(request, options.budgets, &known, request.now) {
        Verdict::Pass(_) => spread::review(request, options, lookups),
        Verdict::Charge(charge) => Outcome::Write(Box::new(Write::Charge(charge))),
        Verdict::Refuse(refused, response) => Outcome::Refused(refused, response),
        Verdict::Unreadable(response) => response.into(),
        Verdict::Uncounted(budget) => {
            Outcome::Retry(COUNT, vec![Lookup::one::<PodUnavailableBudget>(budget)])
        }
        Verdict::Missing => Outcome::Missing(known.missing()),
    }
}

/// Reviews a request.
pub fn decide(request: &Request, gates: Gates, known: &impl Known, now: Timestamp) -> Verdict {
    let Subject {
        pod,
        operation,
        dry_run,
    } = match subject(request, gates) {
        Ok(Some(subject)) => subject,
        Ok(None) => return Verdict::Pass(Passed::NotLimited),
        Err(unreadable) => return Verdict::Unreadable(unreadable),
    };
    let ask = Ask {
        operation,
        dry_run,
        user: &request.user,
    };
    if let Some(stored) = pod {
        return match PodView::deserialize(stored) {
            Ok(pod) => match of_pod(&pod, &ask, gates, known, now) {
                charge @ Verdict::Charge(_) => match stored_as(&pod, known) {
                    Found::Object(_) => charge,
                    Found::NotFound => Verdict::Pass(Passed::NoPod),
                    Found::Unreadable(why) => Verdict::Unreadable(Response::undecodable(why)),
                    Found::Missing => Verdict::Missing,
                },
                verdict => verdict,
            },
            Err(error) => Verdict::Unreadable(Response::undecodable(error)),
        };
    }
    let (namespace, name) = (&request.namespace, &request.name);
    let of_found = |found| match found {
        Found::Object(pod) => of_pod(&pod, &ask, gates, known, now),
        Found::NotFound => Verdict::Pass(Passed::NoPod),
        Found::Unreadable(why) => Verdict::Unreadable(Response::undecodable(why)),
        Found::Missing => Verdict::Missing,
    };
    match of_found(known.pod(namespace, name)) {
        Verdict::Pass(
            Passed::Free(Free::Unavailable | Free::Exempt) | Passed::Unwanted | Passed::NoBudget,
        ) => of_found(known.live_pod(namespace, name)),
        verdict => verdict,
    }
}

/// What is asked about a pod.
struct Ask<'a> {
    operation: Operation,
    dry_run: bool,
    user: &'a str,
}

fn of_pod(pod: &PodView, ask: &Ask<'_>, gates: Gates, known: &impl Known, now: Timestamp) -> Verdict {
    let Some(name) = budget_of(pod) else {
        return Verdict::Pass(Passed::NoBudget);
    };
    // Its entry says so, too, unless the clocks of this program and of the API server differ.
    if known.is_charged(&pod.namespace, name) {
        return Verdict::Pass(Passed::Recorded);
    }
    let budget = match known.budget(&pod.namespace, name) {
        Found::Object(budget) => budget,
        Found::NotFound => return Verdict::Pass(Passed::NoBudget),
        Found::Unreadable(why) => return Verdict::Unreadable(Response::undecodable(why)),
        Found::Missing => return Verdict::Missing,
    };
    let mut account = Account::of(&budget);
    let decision = account.ask(pod, ask.operation, gates, now);
    match wanted::overruled(pod, &account, decision, known) {
        Some(Overruled::Unwanted) => return Verdict::Pass(Passed::Unwanted),
        Some(Overruled::Uncounted) => return Verdict::Uncounted(ObjectName::new(&*pod.namespace, name)),
        Some(Overruled::Missing) => return Verdict::Missing,
        None => {}
    }
    match decision {
        Decision::Free(free) => Verdict::Pass(Passed::Free(free)),
        Decision::Recorded => Verdict::Pass(Passed::Recorded),
        Decision::Renewed | Decision::Charged if ask.dry_run && !is_injected("DryRunCharged") => {
            Verdict::Pass(Passed::DryRun)
        }
        Decision::Renewed | Decision::Charged => Verdict::Charge(charge(&budget, &account, ask)),
        Decision::Refused(refusal) => {
            let (code, reason) = match ask.operation {
                Operation::Evict => (429, Reason::TooManyRequests),
                Operation::Delete | Operation::Update | Operation::Resize => (403, Reason::Forbidden),
            };
            let response = Response::Deny {
                code,
                reason: Some(reason),
                message: refusal.message(name),
            };
            Verdict::Refuse(Refused::disruption(&budget, pod, ask.user).into(), response)
        }
    }
}

fn charge(budget: &Arc<PodUnavailableBudget>, account: &Account<'_>, ask: &Ask<'_>) -> Charge {
    let after = PodUnavailableBudget {
        status: account.status().clone(),
        ..(**budget).clone()
    };
    Charge {
        before: budget.clone(),
        after: Arc::new(after),
        is_eviction: ask.operation == Operation::Evict,
    }
}
