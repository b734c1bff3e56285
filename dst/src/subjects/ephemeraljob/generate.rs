//! Scenarios with an EphemeralJob.

use super::SUBJECT;
use super::start::{Edit, JOBS, NAME, Start};
use crate::rules::prelude::*;

/// A manager may end between containers and the status.
const PLOT: Plot = Plot {
    purpose: Purpose(800),
    watched: &[PODS, PODS, JOBS],
    is_slow: false,
    crashes: true,
};

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    PLOT.draw(&SUBJECT, seed, start, edits, |random, _| edit(random))
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, _: &Start) -> u64 {
    let mut at = 1_000;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for number in 0..random.between(12, 18) {
        at += random.between(300, 20_000);
        // A job that has ended does nothing more.
        let is_time = number % 3 == 2;
        add(at, &if is_time { Edit::Again } else { edit(random) });
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
