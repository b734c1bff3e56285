//! Scenarios with an EphemeralJob.

use super::start::{Edit, JOBS, NAME, Start};
use crate::rules::prelude::*;

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, JOBS];

/// The job, its edits and the faults.
const SCENARIO: Purpose = Purpose(800);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 1_000;
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
    // A manager that ends between containers and the status.
    add_crashes(&mut scenario, random, end);
    finish_edits(&mut scenario, WATCHED, NAME, edit, Edit::is_release);
    scenario
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random) -> u64 {
    let mut at = FIRST;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for number in 0..random.between(12, 18) {
        at += random.between(300, PAUSE);
        // A job that has ended does nothing more.
        let what = if number % 3 == 2 {
            Edit::Again
        } else {
            edit(random)
        };
        add(at, &what);
    }
    add(at + 1, &Edit::Again);
    add(at + 2_000, &Edit::Paused(false));
    at + random.between(5_000, 20_000)
}

fn start(random: &mut Random) -> Start {
    Start {
        pods: random.small(5, 9),
        replicas: replicas(random),
        parallelism: random.small(1, 4),
        seconds: random.one([1, 3, 5, 12]),
        deadline: random.percent(25).then(|| random.between(5, 60) as u32),
        ttl: random.percent(25).then(|| random.between(0, 20) as u32),
        held: random.percent(30),
    }
}

fn replicas(random: &mut Random) -> Option<u8> {
    random.percent(40).then(|| random.small(1, 8))
}

fn edit(random: &mut Random) -> Edit {
    match random.between(0, 99) {
        0..20 => Edit::Again,
        20..40 => Edit::Pod,
        40..55 => Edit::Parallelism(random.small(1, 4)),
        55..70 => Edit::Replicas(replicas(random)),
        70..80 => Edit::Paused(random.percent(50)),
        _ => Edit::Fails(random.percent(60)),
    }
}
