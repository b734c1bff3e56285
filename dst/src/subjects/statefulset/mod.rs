//! StatefulSets.

mod bugs;
mod bystanders;
pub mod edit;
pub mod generate;
mod manifest;
pub mod oracles;
pub mod start;
mod user;

use crate::rules::prelude::*;
use crate::subjects::cloneset::start::Policy;
use edit::Edit;
use oracles::StatefulSetOracles;
use start::{CLASSES, NAME, STATEFULSETS, Start};

/// StatefulSets.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("statefulset-controller"),
    definitions: &[&kruise_api::statefulset::KIND],
    resources: &[STATEFULSETS, PODS, REVISIONS, NODES, CLAIMS, CLASSES],
    scenario: Some(generate::generate),
    clean: || {
        vec![
            ("OrderedReady", clean(false, Policy::InPlaceIfPossible)),
            ("Parallel", clean(true, Policy::ReCreate)),
        ]
    },
    is_release: |change| {
        says(change, |edit: &Edit| {
            let runs = matches!(edit, Edit::Paused(false) | Edit::OnDelete(false));
            runs || matches!(edit, Edit::Expansion(true) | Edit::Create)
        })
    },
    owns: |pod, mirror| mirror.controls(STATEFULSETS, pod),
    least_at_first: Some(("replicas", 5)),
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let oracles = StatefulSetOracles::new(&start);
        let seed = scenario.seed;
        begun(user::StatefulSetUser { seed, start }, oracles)
    },
    ..Subject::PLAIN
};

/// A StatefulSet is created, updated, scaled and rolled back, ordinals are reserved, and nothing fails.
fn clean(parallel: bool, policy: Policy) -> Scenario {
    let start = Start {
        parallel,
        policy,
        claims: Some(start::Claims {
            when_scaled: true,
            when_deleted: true,
            resized: None,
        }),
        ..Start::plain(5)
    };
    let edits = [
        (20_000, Edit::Image(2)),
        (60_000, Edit::Partition(2)),
        (60_001, Edit::Image(3)),
        (90_000, Edit::Scale(7)),
        (110_000, Edit::Reserve(vec!["1".into(), "4-5".into()])),
        (140_000, Edit::Partition(0)),
        (170_000, Edit::Image(1)),
        (200_000, Edit::Scale(5)),
    ];
    Scenario::of_edits(NAME, &start, edits)
}
