//! Scenarios with a BroadcastJob.

use super::start::{Edit, JOBS, NAME, Start};
use crate::rules::prelude::*;
use crate::subjects::nodes::{self, NodeEdit};

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, JOBS, JOBS, NODES];

/// The job, its edits and the faults.
const SCENARIO: Purpose = Purpose(500);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 1_000;
/// Most nodes that there ever are.
const NUMBERS: u64 = 11;
/// Longest pause between two edits, in milliseconds.
const PAUSE: u64 = 20_000;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let start = start(random);
    let mut scenario = begin(seed, NAME, &start, random);
    let end = edits(&mut scenario, random);
    let count = random.between(10, 20);
    add_faults(&mut scenario, random, WATCHED, count, end);
    finish_edits(&mut scenario, WATCHED, NAME, edit, Edit::is_release);
    scenario
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random) -> u64 {
    let mut at = FIRST;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for number in 0..random.between(12, 18) {
        at += random.between(300, PAUSE);
        // A job that has ended does little more.
        let what = if number % 4 == 3 {
            Edit::Again
        } else {
            edit(random)
        };
        add(at, &what);
    }
    // Nodes that lose their readiness have it again later.
    for _ in 0..random.between(0, 2) {
        let node = random.small(1, NUMBERS);
        let from = random.between(2_000, at);
        let status = random.text(&["False", "Unknown"]);
        add(from, &Edit::Node(node, NodeEdit::Ready(status)));
        let until = from + random.between(2_000, 30_000);
        add(until, &Edit::Node(node, NodeEdit::Ready("True".into())));
    }
    add(at + 1, &Edit::Again);
    add(at + 2_000, &Edit::Paused(false));
    at + random.between(5_000, 20_000)
}

fn start(random: &mut Random) -> Start {
    let never = random.percent(25);
    Start {
        nodes: random.small(5, 9),
        parallelism: random.maybe(60, parallelism),
        never,
        policy: policy(random),
        deadline: random.maybe(25, |random| random.between(5, 60) as u32),
        ttl: if random.percent(25) {
            random.between(0, 20) as i32
        } else {
            -1
        },
        pool: random.maybe(15, nodes::any_pool),
        restarts: if random.percent(35) {
            random.between(0, 2) as i32
        } else {
            -1
        },
    }
}

fn parallelism(random: &mut Random) -> String {
    random.text(&["1", "1", "2", "3", "20%", "50%"])
}

fn policy(random: &mut Random) -> String {
    random.text(&["Continue", "Continue", "Pause", "FailFast"])
}

fn edit(random: &mut Random) -> Edit {
    match random.between(0, 99) {
        0..10 => Edit::Again,
        10..22 => Edit::Parallelism(parallelism(random)),
        22..34 => Edit::Paused(random.percent(50)),
        34..42 => Edit::Policy(policy(random)),
        42..54 => Edit::Succeeds(random.percent(60)),
        // Forwards by up to five minutes, or back by up to two: a deadline that a fast clock began ends before all is calm.
        54..58 => Edit::Skew(random.between(1, 300) as i64),
        58..62 => Edit::Skew(-(random.between(1, 120) as i64)),
        _ => Edit::Node(random.small(1, NUMBERS), nodes::random(random)),
    }
}
