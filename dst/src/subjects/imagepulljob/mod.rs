//! ImagePullJobs on nodes with the agents that are shipped. Agents are away, or die; images do not exist, disks are full, and
//! registries are down or never answer.

mod generate;
mod oracles;
mod start;
mod user;

use serde::Deserialize;
use serde_json::Value;
use start::{CONTROLLER, Edit, JOBS, NAME, NODE_IMAGES, SECRETS, Start};

use crate::engine::{
    oracles::Oracles,
    resource::{NODES, PODS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// ImagePullJobs, with the NodeImages that they fill.
pub struct ImagePullJob;

impl Subject for ImagePullJob {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        let kinds = [&kruise_api::imagepulljob::KIND, &kruise_api::nodeimage::KIND];
        kinds.map(|kind| kind.manifest("kruise-system")).into()
    }

    fn resources(&self) -> &'static [Resource] {
        &[NODE_IMAGES, JOBS, SECRETS, NODES, PODS]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("ImagePullJob", clean())]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::ImagePullJobUser { start };
        Ok((Box::new(user), Box::new(oracles::ImagePullJobOracles::default())))
    }
}

/// Jobs for the same image one beside the other, with a secret, a pause and a silent agent, while nothing fails.
fn clean() -> Scenario {
    let start = Start {
        nodes: 5,
        ..Start::default()
    };
    let edits = [
        (40_000, Edit::Again(0)),
        (45_000, Edit::Silent(1, true)),
        (50_000, Edit::Again(1)),
        (60_000, Edit::Parallelism(0, 0)),
        (70_000, Edit::Parallelism(0, 3)),
        (75_000, Edit::Silent(1, false)),
        (80_000, Edit::Delete(1)),
        (90_000, Edit::Secret),
        (95_000, Edit::Again(1)),
        (96_000, Edit::Disk(2, true)),
        (140_000, Edit::Disk(2, false)),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(start).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
