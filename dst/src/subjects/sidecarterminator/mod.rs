//! Jobs whose pods have sidecars, on nodes with the agents that are shipped and on a virtual node. Agents are away, or die between a
//! stop and its report; container runtimes are slow, or away.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::engine::resource::JOBS;
use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::REQUESTS;
use crate::subjects::node_agents::AgentEdit;
use start::{CONTROLLER, Edit, Job, Main, NAME, Sidecar, Start};

/// Pods with sidecars that end with their main containers.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some(CONTROLLER),
    definitions: &[&kruise_api::containerrecreaterequest::KIND],
    resources: &[REQUESTS, PODS, NODES, JOBS],
    scenario: Some(generate::generate),
    clean: || vec![("SidecarTerminator", clean())],
    is_release: |change| says(change, Edit::is_release),
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let user = user::SidecarTerminatorUser { start };
        let oracles = oracles::SidecarTerminatorOracles::default();
        begun(user, oracles)
    },
    ..Subject::PLAIN
};

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
    Scenario::of_edits(NAME, &Start::default(), edits)
}
