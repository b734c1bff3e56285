//! Scenarios with an AdvancedCronJob.

use super::SUBJECT;
use super::start::{CRON_JOBS, Edit, NAME, Start};
use crate::rules::prelude::*;

/// A manager may end between a job and its record.
const PLOT: Plot = Plot {
    purpose: Purpose(700),
    watched: &[CRON_JOBS, CRON_JOBS, JOBS, JOBS, JOBS, PODS],
    is_slow: true,
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
    for _ in 0..random.between(10, 14) {
        at += pause(random, 35);
        add(at, &edit(random));
    }
    at += random.between(5_000, 30_000);
    add(at, &Edit::Paused(true));
    at
}

fn start(random: &mut Random) -> Start {
    Start {
        schedule: schedule(random),
        policy: policy(random),
        seconds: random.one([1, 3, 3, 12, 35]),
        fails: random.percent(25),
        limits: limits(random),
        deadline: deadline(random),
        ttl: random.percent(25).then(|| random.between(0, 20) as u32),
    }
}

fn schedule(random: &mut Random) -> String {
    random.text(&[
        "* * * * *",
        "*/2 * * * *",
        "@every 5s",
        "@every 10s",
        "@every 15s",
        "@every 40s",
    ])
}

fn policy(random: &mut Random) -> String {
    random.text(&["Allow", "Forbid", "Forbid", "Replace"])
}

fn limits(random: &mut Random) -> (u8, u8) {
    (random.small(0, 3), random.small(0, 2))
}

fn deadline(random: &mut Random) -> Option<u32> {
    random.percent(25).then(|| random.between(5, 60) as u32)
}

fn edit(random: &mut Random) -> Edit {
    match random.between(0, 99) {
        0..20 => Edit::Schedule(schedule(random)),
        20..38 => Edit::Policy(policy(random)),
        38..48 => Edit::Paused(true),
        48..62 => Edit::Paused(false),
        62..74 => {
            let (well, badly) = limits(random);
            Edit::Limits(well, badly)
        }
        74..80 => Edit::Deadline(deadline(random)),
        80..92 => Edit::Delete(random.small(0, 9)),
        // Forwards by up to a day, or back by up to ten minutes.
        _ if random.percent(60) => Edit::Skew(random.between(1, 86_400) as i64),
        _ => Edit::Skew(-(random.between(1, 600) as i64)),
    }
}
