//! Requests that make pods unavailable: deletions, evictions, updates and resizes, at `/validate-pod`.
//!
//! [`decide`] finds out which pod a request is about and what happens to it (`subject`), and asks the
//! [ledger](kruise_plan_kit::ledger) of the budget that the pod names. It reads the cluster through [`Known`] and writes
//! nothing: what is charged it returns as a [`Charge`], which is to be stored before the request passes.
//!
//! # What it promises
//! - A pod is judged as the server has it: deletions and updates carry the stored pod, and an eviction that would pass only
//!   because a cache says that the pod is not ready reads the pod again.
//! - A pod that does not exist, or whose budget does not exist, passes: the server answers better.
//! - A dry run in any form is decided alike, and charges nothing.
//! - A refused eviction is 429, so that clients such as `kubectl drain` try again. Everything else is 403.

mod subject;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::ledger::{Account, Decision, Free, Gates, Operation, budget_of};
use kruise_views::PodView;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{Request, Response};
use subject::{Subject, subject};

/// What is known of the cluster.
pub trait Known {
    /// A pod as a cache has it, or as the server has it if the cache lacks it.
    fn pod(&self, namespace: &str, name: &str) -> Found<PodView>;

    /// A pod as the server has it now.
    fn live_pod(&self, namespace: &str, name: &str) -> Found<PodView>;

    /// A budget.
    fn budget(&self, namespace: &str, name: &str) -> Found<PodUnavailableBudget>;
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<T> {
    /// The object.
    Object(Arc<T>),
    /// There is none.
    NotFound,
    /// It has yet to be looked up.
    Missing,
}

/// The outcome of a review.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The request passes.
    Pass(Passed),
    /// The request passes once this is stored.
    Charge(Charge),
    /// The request is turned down by a budget.
    Refuse(Refused),
    /// The request cannot be read.
    Unreadable(Response),
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
    /// It is charged already.
    Recorded,
    /// It would be charged, but it is a dry run.
    DryRun,
}

/// A charge to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
    /// Namespace of the budget.
    pub namespace: String,
    /// Name of the budget.
    pub budget: String,
    /// UID of the budget.
    pub uid: String,
    /// The version of the budget that was asked: the charge is for no other.
    pub version: String,
    /// Merge patch of the status.
    pub patch: Value,
}

/// A refusal, and what is counted and logged of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// HTTP status.
    pub code: u16,
    /// For the client, who matches on it.
    pub message: String,
    /// `Kind_namespace_name` of the workload that owns the pod, or of the pod.
    pub about: String,
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
    if let Some(stored) = pod {
        return match PodView::deserialize(stored) {
            Ok(pod) => of_pod(&pod, operation, dry_run, gates, known, now),
            Err(error) => Verdict::Unreadable(Response::undecodable(error)),
        };
    }
    let (namespace, name) = (&request.namespace, &request.name);
    let of_found = |found| match found {
        Found::Object(pod) => of_pod(&pod, operation, dry_run, gates, known, now),
        Found::NotFound => Verdict::Pass(Passed::NoPod),
        Found::Missing => Verdict::Missing,
    };
    match of_found(known.pod(namespace, name)) {
        Verdict::Pass(Passed::Free(Free::Unavailable | Free::Exempt) | Passed::NoBudget) => {
            of_found(known.live_pod(namespace, name))
        }
        verdict => verdict,
    }
}

fn of_pod(
    pod: &PodView,
    operation: Operation,
    dry_run: bool,
    gates: Gates,
    known: &impl Known,
    now: Timestamp,
) -> Verdict {
    let Some(name) = budget_of(pod) else {
        return Verdict::Pass(Passed::NoBudget);
    };
    let budget = match known.budget(&pod.namespace, name) {
        Found::Object(budget) => budget,
        Found::NotFound => return Verdict::Pass(Passed::NoBudget),
        Found::Missing => return Verdict::Missing,
    };
    let mut account = Account::of(&budget);
    match account.ask(pod, operation, gates, now) {
        Decision::Free(free) => Verdict::Pass(Passed::Free(free)),
        Decision::Recorded => Verdict::Pass(Passed::Recorded),
        Decision::Renewed | Decision::Charged if dry_run => Verdict::Pass(Passed::DryRun),
        Decision::Renewed | Decision::Charged => charge(&account),
        Decision::Refused(refusal) => Verdict::Refuse(Refused {
            code: if operation == Operation::Evict { 429 } else { 403 },
            message: refusal.message(name),
            about: about(pod),
        }),
    }
}

fn charge(account: &Account<'_>) -> Verdict {
    let metadata = &account.budget().metadata;
    account.patch().map_or(Verdict::Pass(Passed::Recorded), |patch| {
        Verdict::Charge(Charge {
            namespace: metadata.namespace.clone(),
            budget: metadata.name.clone(),
            uid: metadata.uid.clone(),
            version: metadata.resource_version.clone(),
            patch,
        })
    })
}

/// Whom a refusal is counted for.
fn about(pod: &PodView) -> String {
    let namespace = if pod.namespace.is_empty() {
        "default"
    } else {
        &pod.namespace
    };
    match &pod.controller {
        Some(owner) => format!("{}_{namespace}_{}", owner.kind, owner.name),
        None => format!("unknown_{namespace}_{}", pod.name),
    }
}
