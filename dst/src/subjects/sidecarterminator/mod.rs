//! Jobs whose pods have sidecars, on nodes with the agents that are shipped and on a virtual node. Agents are away,
//! or die between a stop and its report; container runtimes are slow, or away.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::REQUESTS;
use crate::subjects::node_agents::AgentEdit;
use start::{Edit, Job, Main, NAME, Sidecar, Start};

/// Pods with sidecars that end with their main containers.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("sidecarterminator-controller"),
    definitions: &[&kruise_api::containerrecreaterequest::KIND],
    resources: &[REQUESTS, PODS, NODES, JOBS],
    scenario: Some(generate::generate),
    clean: || vec![("SidecarTerminator", clean())],
    is_release: |change| {
        says(
            change,
            |edit: &Edit| matches!(edit, Edit::Agent(_, edit) if edit.is_release()),
        )
    },
    owns: |pod, _| pod.label("app") == "report",
    least: &[(REQUESTS, 12)],
    begin: |scenario| {
        let oracles = oracles::SidecarTerminatorOracles::default();
        begun(scenario.start::<Start>(NAME)?, oracles)
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
        (4_000, job(false, false, 0, &[sidecar(false, false); 2])),
        (30_000, job(true, false, 1, &[sidecar(true, false)])),
        (40_000, Edit::Agent(1, AgentEdit::Silent(true))),
        (41_000, Edit::Agent(2, AgentEdit::Silent(true))),
        (45_000, job(false, false, 0, &[sidecar(false, true)])),
        (46_000, job(true, false, 0, &both)),
        (70_000, Edit::Agent(1, AgentEdit::Silent(false))),
        (70_000, Edit::Agent(2, AgentEdit::Silent(false))),
    ];
    Scenario::of_edits(NAME, &Start { dying: 0 }, edits)
}
