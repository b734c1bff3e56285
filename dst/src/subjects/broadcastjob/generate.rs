//! Scenarios with a BroadcastJob.

use super::SUBJECT;
use super::start::{Edit, JOBS, NAME, Start};
use crate::rules::prelude::*;
use crate::subjects::nodes;

const PLOT: Plot = Plot {
    purpose: Purpose(500),
    watched: &[PODS, PODS, JOBS, JOBS, NODES],
    is_slow: false,
    crashes: false,
};

/// Most nodes that there ever are.
const NUMBERS: u64 = 11;

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
        // A job that has ended does little more.
        let is_time = number % 4 == 3;
        add(at, &if is_time { Edit::Again } else { edit(random) });
    }
    for (at, edit) in nodes::lost_for_a_while(random, NUMBERS, at, &["False", "Unknown"], 30_000) {
        add(at, &Edit::Node(edit.0, edit.1));
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
        ttl: number(random, 25, 20),
        pool: random.maybe(15, nodes::any_pool),
        restarts: number(random, 35, 2),
    }
}

/// A number up to this one with this probability in percent, or -1.
fn number(random: &mut Random, percent: u8, most: u64) -> i32 {
    let drawn = random.percent(percent).then(|| random.between(0, most));
    drawn.map_or(-1, |number| number as i32)
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
        // Forwards by up to five minutes, or back by up to two: a deadline that a fast clock began ends before all
        // is calm.
        54..58 => Edit::Skew(random.between(1, 300) as i64),
        58..62 => Edit::Skew(-(random.between(1, 120) as i64)),
        _ => Edit::Node(random.small(1, NUMBERS), nodes::random(random)),
    }
}
