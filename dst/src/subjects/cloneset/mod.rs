//! CloneSets.

mod bugs;
pub mod draft;
pub mod edit;
mod features;
pub mod generate;
pub mod manifest;
mod oracles;
pub mod start;
mod user;

use crate::rules::prelude::*;
use draft::{CLONESETS, CONTROLLER, NAME};
use edit::Edit;
use start::{Claims, Policy, Start};

/// CloneSets.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some(CONTROLLER),
    definitions: &[&kruise_api::cloneset::KIND],
    resources: &[CLONESETS, PODS, REVISIONS, NODES, CLAIMS],
    is_always_watched: true,
    scenario: Some(generate::generate),
    clean: || {
        vec![
            ("InPlaceIfPossible", clean(Policy::InPlaceIfPossible)),
            ("ReCreate", clean(Policy::ReCreate)),
        ]
    },
    is_release: |change| says(change, Edit::is_release),
    owns: |pod, mirror| mirror.controls(CLONESETS, pod),
    least_at_first: Some(("replicas", 5)),
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let oracles = oracles::CloneSetOracles::new(&start);
        let seed = scenario.seed;
        begun(user::CloneSetUser { seed, start }, oracles)
    },
    ..Subject::PLAIN
};

/// A CloneSet is created, updated, scaled and rolled back, and nothing fails.
fn clean(policy: Policy) -> Scenario {
    let start = Start {
        claims: Some(Claims::Gone),
        ..Start::plain(5, policy)
    };
    let edits = [
        (10_000, Edit::Image(2)),
        (30_000, Edit::Partition("2".into())),
        (30_001, Edit::Image(3)),
        (50_000, Edit::Scale(7)),
        (60_000, Edit::PodsToDelete(vec![1], true)),
        (70_000, Edit::Partition("0".into())),
        (90_000, Edit::Image(1)),
        (110_000, Edit::Scale(5)),
    ];
    Scenario::of_edits(NAME, &start, edits)
}
