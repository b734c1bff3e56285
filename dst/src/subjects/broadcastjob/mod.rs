//! BroadcastJobs above nodes that change, and that come to their end and begin anew.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use crate::subjects::nodes::NodeEdit;
use start::{CONTROLLER, Edit, JOBS, NAME, Start};

/// BroadcastJobs.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some(CONTROLLER),
    definitions: &[&kruise_api::broadcastjob::KIND],
    resources: &[JOBS, PODS, NODES],
    scenario: Some(generate::generate),
    clean: || vec![("BroadcastJob", clean())],
    is_release: |change| says(change, Edit::is_release),
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let user = user::BroadcastJobUser { start: start.clone() };
        begun(user, oracles::BroadcastJobOracles::new(start))
    },
    ..Subject::PLAIN
};

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
    Scenario::of_edits(NAME, &start, edits)
}
