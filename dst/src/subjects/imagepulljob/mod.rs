//! ImagePullJobs on nodes with the agents that are shipped. Agents are away, or die; images do not exist, disks are full, and
//! registries are down or never answer.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use start::{CONTROLLER, Edit, JOBS, NAME, NODE_IMAGES, SECRETS, Start};

/// ImagePullJobs, with the NodeImages that they fill.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some(CONTROLLER),
    definitions: &[&kruise_api::imagepulljob::KIND, &kruise_api::nodeimage::KIND],
    resources: &[NODE_IMAGES, JOBS, SECRETS, NODES, PODS],
    scenario: Some(generate::generate),
    clean: || vec![("ImagePullJob", clean())],
    is_release: |change| says(change, Edit::is_release),
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let user = user::ImagePullJobUser { start };
        begun(user, oracles::ImagePullJobOracles::default())
    },
    ..Subject::PLAIN
};

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
    Scenario::of_edits(NAME, &start, edits)
}
