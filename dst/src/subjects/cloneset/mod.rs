//! CloneSets.

pub mod draft;
pub mod edit;
mod features;
pub mod generate;
pub mod manifest;
mod oracles;
pub mod start;
mod user;

use draft::{CLONESETS, NAME};
use edit::Edit;
use kruise_api::cloneset::crd;
use serde::Deserialize;
use serde_json::Value;
use start::{Claims, Policy, Start};

use crate::engine::{
    oracles::Oracles,
    resource::{CLAIMS, NODES, PODS, REVISIONS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// CloneSets.
pub struct CloneSet;

impl Subject for CloneSet {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some("cloneset-controller")
    }

    fn definitions(&self) -> Vec<Value> {
        vec![crd::manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[CLONESETS, PODS, REVISIONS, NODES, CLAIMS]
    }

    fn is_always_watched(&self) -> bool {
        true
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![
            ("InPlaceIfPossible", clean(Policy::InPlaceIfPossible)),
            ("ReCreate", clean(Policy::ReCreate)),
        ]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::CloneSetUser {
            seed: scenario.seed,
            start: start.clone(),
        };
        Ok((Box::new(user), Box::new(oracles::CloneSetOracles::new(start))))
    }
}

/// A CloneSet is created, updated, scaled and rolled back, and nothing fails.
fn clean(policy: Policy) -> Scenario {
    let start = Start {
        claims: Some(Claims::Gone),
        ..Start::plain(5, policy)
    };
    let edits = [
        (10_000, Edit::Image(2)),
        (30_000, Edit::Partition("2".into())),
        (30_001, Edit::Image(3)),
        (50_000, Edit::Scale(7)),
        (60_000, Edit::PodsToDelete(vec![1], true)),
        (70_000, Edit::Partition("0".into())),
        (90_000, Edit::Image(1)),
        (110_000, Edit::Scale(5)),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(start).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
