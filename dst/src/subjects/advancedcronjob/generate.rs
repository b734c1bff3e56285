//! Scenarios with an AdvancedCronJob.

use super::edit::Edit;
use super::start::{CRON_JOBS, JOBS, NAME, Start};
use crate::rules::prelude::*;

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[CRON_JOBS, CRON_JOBS, JOBS, JOBS, JOBS, PODS];

/// The AdvancedCronJob, its edits and the faults.
const SCENARIO: Purpose = Purpose(700);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 1_000;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let start = start(random);
    let mut scenario = begin(seed, NAME, &start, random);
    let end = edits(&mut scenario, random);
    let count = faults(&scenario, random);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager that ends between a job and its record.
    add_crashes(&mut scenario, random, end);
    finish_edits(&mut scenario, WATCHED, NAME, edit, Edit::is_release);
    scenario
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random) -> u64 {
    let mut at = FIRST;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for _ in 0..random.between(10, 14) {
        at += pause(random, 35);
        add(at, &edit(random));
    }
    // A schedule that goes on has no end.
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
