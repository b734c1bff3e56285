//! BroadcastJobs above nodes that change, and that come to their end and begin anew.

mod generate;
mod oracles;
mod start;
mod user;

use serde::Deserialize;
use serde_json::Value;
use start::{CONTROLLER, Edit, JOBS, NAME, Start};

use crate::engine::{
    oracles::Oracles,
    resource::{NODES, PODS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};
use crate::subjects::nodes::NodeEdit;

/// BroadcastJobs.
pub struct BroadcastJob;

impl Subject for BroadcastJob {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::broadcastjob::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[JOBS, PODS, NODES]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("BroadcastJob", clean())]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::BroadcastJobUser { start: start.clone() };
        Ok((Box::new(user), Box::new(oracles::BroadcastJobOracles::new(start))))
    }
}

/// A BroadcastJob runs on some nodes at a time, is paused by a failure, goes on, and runs again, while nodes change and nothing
/// fails.
fn clean() -> Scenario {
    let start = Start {
        nodes: 10,
        parallelism: "2".into(),
        policy: "Pause".into(),
        ..Start::default()
    };
    let edits = [
        (3_000, Edit::Succeeds(false)),
        (8_000, Edit::Node(5, NodeEdit::Taint("NoExecute".into()))),
        (30_000, Edit::Policy("Continue".into())),
        (31_000, Edit::Succeeds(true)),
        (32_000, Edit::Node(11, NodeEdit::Join)),
        (70_000, Edit::Again),
        (72_000, Edit::Node(4, NodeEdit::Leave)),
        (74_000, Edit::Node(3, NodeEdit::Cordon(true))),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(start).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
