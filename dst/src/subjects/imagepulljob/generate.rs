//! Scenarios with ImagePullJobs.

use super::SUBJECT;
use super::start::{Edit, JOBS, Job, MISSING, MOST_NODES, NAME, NODE_IMAGES, SECRETS, Start};
use crate::rules::prelude::*;
use crate::subjects::nodes::NodeEdit;

/// A manager may end between the copy of a secret and the nodes, and between two nodes.
const PLOT: Plot = Plot {
    purpose: Purpose(900),
    watched: &[NODE_IMAGES, NODE_IMAGES, JOBS, SECRETS, NODES],
    is_slow: false,
    crashes: true,
};

/// What users do begins after this many milliseconds: nodes have their NodeImages then.
const FIRST: u64 = 32_000;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    PLOT.draw(&SUBJECT, seed, start, edits, edit)
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, start: &Start) -> u64 {
    let mut at = FIRST;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for number in 0..random.between(12, 18) {
        at += random.between(300, 15_000);
        // A job that has ended does nothing more.
        let what = if number % 3 == 2 {
            Edit::Again(random.small(0, 1))
        } else {
            edit(random, start)
        };
        add(at, &what);
    }
    for number in 1..=start.nodes {
        add(at + 1, &Edit::Node(number, NodeEdit::Join));
        add(at + 2, &Edit::Silent(number, false));
        add(at + 2, &Edit::Disk(number, false));
    }
    add(at + 2, &Edit::RegistryBack);
    for place in [0, 1] {
        add(at + 3, &Edit::Again(place));
        add(at + 2_000, &Edit::Parallelism(place, 2));
    }
    at + random.between(5_000, 20_000)
}

fn start(random: &mut Random) -> Start {
    Start {
        nodes: random.small(4, u64::from(MOST_NODES)),
        jobs: [job(random), job(random)],
        seconds: random.one([1, 3, 8]),
    }
}

fn job(random: &mut Random) -> Job {
    Job {
        image: random.one([0, 0, 0, 1, 1, 1, MISSING]),
        parallelism: random.small(1, 4),
        never: random.percent(30),
        secret: random.percent(60),
        deadline: random.percent(20).then(|| random.between(30, 90) as u32),
        ttl: random.one([0, 5, 20, 60]),
    }
}

fn edit(random: &mut Random, start: &Start) -> Edit {
    let place = random.small(0, 1);
    let node = random.small(1, u64::from(start.nodes));
    match random.between(0, 99) {
        0..20 => Edit::Again(place),
        20..28 => Edit::Delete(place),
        28..44 => Edit::Parallelism(place, random.small(0, 4)),
        44..54 => Edit::Silent(node, random.percent(60)),
        54..60 => Edit::Dies(node),
        60..66 => Edit::Disk(node, random.percent(60)),
        66..68 => Edit::RegistryDown,
        68..70 => Edit::RegistryHangs,
        70..73 => Edit::RegistryBack,
        73..80 => Edit::Secret,
        80..88 => Edit::Node(node, NodeEdit::Leave),
        _ => Edit::Node(node, NodeEdit::Join),
    }
}
