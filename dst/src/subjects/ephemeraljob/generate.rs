//! Scenarios with an EphemeralJob.

use super::start::{Edit, JOBS, NAME, Start};
use crate::engine::{
    generate::{add_crashes, add_faults, begin, finish},
    random::{Purpose, Random},
    resource::{PODS, Resource},
    scenario::{Action, Scenario, Step},
};

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
    finish(
        &mut scenario,
        WATCHED,
        |random| action(&edit(random)),
        |what| what.edit_of::<Edit>(NAME).is_some_and(|edit| edit.is_release()),
    );
    scenario
}

fn action(edit: &Edit) -> Action {
    Action::edit(NAME, edit)
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random) -> u64 {
    let mut at = FIRST;
    let mut add = |at, edit: &Edit| {
        let what = action(edit);
        scenario.steps.push(Step { at, what });
    };
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
        pods: random.between(5, 9) as u8,
        replicas: replicas(random),
        parallelism: random.between(1, 4) as u8,
        seconds: *random.pick(&[1, 3, 5, 12]).unwrap_or(&1),
        deadline: random.percent(25).then(|| random.between(5, 60) as u32),
        ttl: random.percent(25).then(|| random.between(0, 20) as u32),
        held: random.percent(30),
    }
}

fn replicas(random: &mut Random) -> Option<u8> {
    random.percent(40).then(|| random.between(1, 8) as u8)
}

fn edit(random: &mut Random) -> Edit {
    match random.between(0, 99) {
        0..20 => Edit::Again,
        20..40 => Edit::Pod,
        40..55 => Edit::Parallelism(random.between(1, 4) as u8),
        55..70 => Edit::Replicas(replicas(random)),
        70..80 => Edit::Paused(random.percent(50)),
        _ => Edit::Fails(random.percent(60)),
    }
}
