//! DaemonSets above nodes that change.

mod bugs;
mod edit;
mod generate;
mod manifest;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use crate::subjects::nodes::NodeEdit;
use edit::Edit;
use start::{CONTROLLER, DAEMONSETS, NAME, Start, Strategy};

/// DaemonSets.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some(CONTROLLER),
    definitions: &[&kruise_api::daemonset::KIND],
    resources: &[DAEMONSETS, PODS, REVISIONS, NODES],
    scenario: Some(generate::generate),
    clean: || {
        vec![
            ("DaemonSet in place", clean(Strategy::InPlace("2".into()))),
            ("DaemonSet with surge", clean(Strategy::Surge("2".into()))),
        ]
    },
    is_release: |change| says(change, Edit::is_release),
    begin: |scenario| {
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
        begun(user, oracles::DaemonSetOracles::new(start, surges))
    },
    ..Subject::PLAIN
};

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
    Scenario::of_edits(NAME, &start, edits)
}
