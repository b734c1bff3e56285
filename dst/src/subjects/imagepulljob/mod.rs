//! ImagePullJobs on nodes with the agents that are shipped. Agents are away, or die; images do not exist, disks are
//! full, and registries are down or never answer.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use start::{Edit, JOBS, Job, NAME, NODE_IMAGES, SECRETS, Start};

/// ImagePullJobs, with the NodeImages that they fill.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("imagepulljob-controller"),
    definitions: &[&kruise_api::imagepulljob::KIND, &kruise_api::nodeimage::KIND],
    resources: &[NODE_IMAGES, JOBS, SECRETS, NODES, PODS],
    scenario: Some(generate::generate),
    clean: || vec![("ImagePullJob", clean())],
    is_release: |change| {
        says(change, |edit: &Edit| match edit {
            Edit::Silent(_, false) | Edit::Disk(_, false) | Edit::RegistryBack => true,
            Edit::Parallelism(_, parallelism) => *parallelism > 0,
            _ => false,
        })
    },
    remembers_pods: false,
    least: &[(NODE_IMAGES, 20)],
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        begun(start, oracles::ImagePullJobOracles::default())
    },
    ..Subject::PLAIN
};

/// Jobs for the same image one beside the other, with a secret, a pause and a silent agent, while nothing fails.
fn clean() -> Scenario {
    let job = |never| Job {
        image: 0,
        parallelism: 2,
        never,
        secret: true,
        deadline: None,
        ttl: 20,
    };
    let start = Start {
        nodes: 5,
        jobs: [job(false), job(true)],
        seconds: 3,
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
