//! DaemonSets above nodes that change.

mod edit;
mod generate;
mod manifest;
mod oracles;
mod start;
mod user;

use edit::Edit;
use serde::Deserialize;
use serde_json::Value;
use start::{CONTROLLER, DAEMONSETS, NAME, Start, Strategy};

use crate::engine::{
    oracles::Oracles,
    resource::{NODES, PODS, REVISIONS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};
use crate::subjects::nodes::NodeEdit;

/// DaemonSets.
pub struct DaemonSet;

impl Subject for DaemonSet {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::daemonset::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[DAEMONSETS, PODS, REVISIONS, NODES]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![
            ("DaemonSet in place", clean(Strategy::InPlace("2".into()))),
            ("DaemonSet with surge", clean(Strategy::Surge("2".into()))),
        ]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::DaemonSetUser {
            seed: scenario.seed,
            start: start.clone(),
        };
        let surges = matches!(start.strategy, Strategy::Surge(_))
            || scenario.steps.iter().any(|step| {
                let edit = step.what.edit_of(NAME);
                matches!(edit, Some(Edit::Strategy(Strategy::Surge(_))))
            });
        Ok((
            Box::new(user),
            Box::new(oracles::DaemonSetOracles::new(start, surges)),
        ))
    }
}

/// A DaemonSet is created, updated and rolled back while nodes join, leave and are tainted, and nothing fails.
fn clean(strategy: Strategy) -> Scenario {
    let start = Start {
        nodes: 6,
        strategy,
        ..Start::default()
    };
    let edits = [
        (20_000, Edit::Image(2)),
        (60_000, Edit::Node(7, NodeEdit::Join)),
        (70_000, Edit::Partition("2".into())),
        (70_001, Edit::Image(3)),
        (100_000, Edit::Node(5, NodeEdit::Leave)),
        (110_000, Edit::Node(4, NodeEdit::Taint("NoExecute".into()))),
        (120_000, Edit::Partition(String::new())),
        (150_000, Edit::Env(1)),
        (190_000, Edit::Node(4, NodeEdit::Taint(String::new()))),
        (210_000, Edit::Image(1)),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(start).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
