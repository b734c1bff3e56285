//! Budgets and pods for the tests of the ledger.

mod counts;
mod races;
mod rules;

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_views::{ConditionView, Phase, PodView, Truth};
use serde_json::{Value, json};

use super::{Gates, Operation};

const ALL_GATES: Gates = Gates {
    deletions: true,
    updates: true,
    resizes_apart: true,
};

const OPERATIONS: [Operation; 4] = [
    Operation::Delete,
    Operation::Evict,
    Operation::Update,
    Operation::Resize,
];

/// Seconds after the epoch.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// A budget of this specification that lets so many of its 5 pods go.
fn budget(spec: Value, allowed: i32) -> PodUnavailableBudget {
    let object = json!({
        "apiVersion": "policy.kruise.io/v1beta1",
        "metadata": {"name": "web", "namespace": "shop", "generation": 3},
        "spec": spec,
        "status": {"observedGeneration": 3, "unavailableAllowed": allowed, "currentAvailable": 4 + allowed,
                   "desiredAvailable": 4, "totalReplicas": 5},
    });
    PodUnavailableBudget::from_value(object).unwrap()
}

/// One of five may be unavailable.
fn one() -> Value {
    json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1})
}

/// A pod that was created and became ready at the epoch.
fn pod(name: &str) -> PodView {
    PodView {
        name: name.into(),
        created: Some(Timestamp::UNIX_EPOCH),
        phase: Phase::Running,
        conditions: Box::new([ready(Truth::True, 0)]),
        ..PodView::default()
    }
}

fn ready(status: Truth, since: i64) -> ConditionView {
    ConditionView {
        kind: "Ready".into(),
        status,
        since: Some(at(since)),
        ..ConditionView::default()
    }
}

fn pods(names: &[&str]) -> Vec<Arc<PodView>> {
    names.iter().map(|name| Arc::new(pod(name))).collect()
}
