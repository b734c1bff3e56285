//! Jobs whose pods have sidecars, on nodes with the agents that are shipped and on a virtual node. Agents are away, or die between a
//! stop and its report; container runtimes are slow, or away.

mod generate;
mod oracles;
mod start;
mod user;

use serde::Deserialize;
use serde_json::Value;
use start::{CONTROLLER, Edit, Job, Main, NAME, Sidecar, Start};

use super::containerrecreaterequest::REQUESTS;
use super::node_agents::AgentEdit;
use crate::engine::{
    oracles::Oracles,
    resource::{JOBS, NODES, PODS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// Pods with sidecars that end with their main containers.
pub struct SidecarTerminator;

impl Subject for SidecarTerminator {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::containerrecreaterequest::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[REQUESTS, PODS, NODES, JOBS]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("SidecarTerminator", clean())]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::SidecarTerminatorUser { start };
        let oracles = oracles::SidecarTerminatorOracles::default();
        Ok((Box::new(user), Box::new(oracles)))
    }
}

/// Jobs with sidecars of all kinds, one of which begins anew, and an agent that is away, while nothing fails.
fn clean() -> Scenario {
    let sidecar = |ignored, deaf| Sidecar { ignored, deaf };
    let job = |never, on_virtual, code, sidecars: &[Sidecar]| {
        Edit::Job(Job {
            pods: 1,
            never,
            limit: 2,
            on_virtual,
            mains: vec![Main { seconds: 4, code }, Main { seconds: 9, code: 0 }],
            sidecars: sidecars.to_vec(),
        })
    };
    let both = [sidecar(false, false), sidecar(true, true)];
    let edits = [
        (1_000, job(true, false, 0, &both)),
        (2_000, job(false, false, 0, &[sidecar(true, true)])),
        (3_000, job(true, true, 0, &[sidecar(false, false)])),
        (
            4_000,
            job(false, false, 0, &[sidecar(false, false), sidecar(false, false)]),
        ),
        (30_000, job(true, false, 1, &[sidecar(true, false)])),
        (40_000, Edit::Agent(1, AgentEdit::Silent(true))),
        (41_000, Edit::Agent(2, AgentEdit::Silent(true))),
        (45_000, job(false, false, 0, &[sidecar(false, true)])),
        (46_000, job(true, false, 0, &both)),
        (70_000, Edit::Agent(1, AgentEdit::Silent(false))),
        (70_000, Edit::Agent(2, AgentEdit::Silent(false))),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(Start::default()).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
