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
use oracles::DaemonSetOracles;
use start::{DAEMONSETS, NAME, Start, Strategy};

/// DaemonSets.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("daemonset-controller"),
    definitions: &[&kruise_api::daemonset::KIND],
    resources: &[DAEMONSETS, PODS, REVISIONS, NODES],
    scenario: Some(generate::generate),
    clean: || {
        vec![
            ("DaemonSet in place", clean(Strategy::InPlace("2".into()))),
            ("DaemonSet with surge", clean(Strategy::Surge("2".into()))),
        ]
    },
    is_release: |change| {
        says(change, |edit: &Edit| match edit {
            Edit::Paused(paused) => !paused,
            Edit::OnDelete(on_delete) => !on_delete,
            Edit::Node(_, edit) => edit.is_release(),
            _ => false,
        })
    },
    owns: |pod, mirror| mirror.controls(DAEMONSETS, pod),
    least_at_first: Some(("nodes", 5)),
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let is_surge = |strategy: &Strategy| matches!(strategy, Strategy::Surge(_));
        let turns_to_it = |edit: &Edit| matches!(edit, Edit::Strategy(to) if is_surge(to));
        let mut steps = scenario.steps.iter();
        let surges = is_surge(&start.strategy) || steps.any(|step| step.what.says(NAME, turns_to_it));
        let seed = scenario.seed;
        begun(user::DaemonSetUser { seed, start }, DaemonSetOracles::new(surges))
    },
    ..Subject::PLAIN
};

/// A DaemonSet is created, updated and rolled back while nodes join, leave and are tainted, and nothing fails.
fn clean(strategy: Strategy) -> Scenario {
    let start = Start {
        nodes: 6,
        strategy,
        partition: String::new(),
        selector: String::new(),
        burst: String::new(),
        min_ready_seconds: 0,
        pool: String::new(),
        pre_delete: None,
        partitioned_scaling: false,
        prunes: false,
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
