//! StatefulSets.

mod bystanders;
pub mod edit;
pub mod generate;
mod manifest;
pub mod oracles;
pub mod start;
mod user;

use edit::Edit;
use serde::Deserialize;
use serde_json::Value;
use start::{CLASSES, CONTROLLER, NAME, STATEFULSETS, Start};

use super::cloneset::start::Policy;
use crate::engine::{
    oracles::Oracles,
    resource::{CLAIMS, NODES, PODS, REVISIONS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// StatefulSets.
pub struct StatefulSet;

impl Subject for StatefulSet {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::statefulset::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[STATEFULSETS, PODS, REVISIONS, NODES, CLAIMS, CLASSES]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![
            ("OrderedReady", clean(false, Policy::InPlaceIfPossible)),
            ("Parallel", clean(true, Policy::ReCreate)),
        ]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::StatefulSetUser {
            seed: scenario.seed,
            start: start.clone(),
        };
        Ok((Box::new(user), Box::new(oracles::StatefulSetOracles::new(start))))
    }
}

/// A StatefulSet is created, updated, scaled and rolled back, ordinals are reserved, and nothing fails.
fn clean(parallel: bool, policy: Policy) -> Scenario {
    let start = Start {
        parallel,
        policy,
        claims: Some(start::Claims {
            when_scaled: true,
            when_deleted: true,
            resized: None,
        }),
        ..Start::plain(5)
    };
    let edits = [
        (20_000, Edit::Image(2)),
        (60_000, Edit::Partition(2)),
        (60_001, Edit::Image(3)),
        (90_000, Edit::Scale(7)),
        (110_000, Edit::Reserve(vec!["1".into(), "4-5".into()])),
        (140_000, Edit::Partition(0)),
        (170_000, Edit::Image(1)),
        (200_000, Edit::Scale(5)),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(start).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
