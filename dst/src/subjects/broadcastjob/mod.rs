//! BroadcastJobs above nodes that change, and that come to their end and begin anew.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use crate::subjects::nodes::NodeEdit;
use oracles::BroadcastJobOracles;
use start::{Edit, JOBS, NAME, Start};

/// BroadcastJobs.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("broadcastjob-controller"),
    definitions: &[&kruise_api::broadcastjob::KIND],
    resources: &[JOBS, PODS, NODES],
    scenario: Some(generate::generate),
    clean: || vec![("BroadcastJob", clean())],
    is_release: |change| {
        says(change, |edit: &Edit| match edit {
            Edit::Paused(paused) => !paused,
            Edit::Node(_, edit) => edit.is_release(),
            _ => false,
        })
    },
    owns: |pod, mirror| mirror.controls(JOBS, pod),
    least_at_first: Some(("nodes", 5)),
    begin: |scenario| begun(scenario.start::<Start>(NAME)?, BroadcastJobOracles::default()),
    ..Subject::PLAIN
};

/// A BroadcastJob runs on some nodes at a time, is paused by a failure, goes on, and runs again, while nodes change
/// and nothing fails.
fn clean() -> Scenario {
    let start = Start {
        nodes: 10,
        parallelism: "2".into(),
        never: false,
        policy: "Pause".into(),
        deadline: 0,
        ttl: -1,
        pool: String::new(),
        restarts: -1,
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
