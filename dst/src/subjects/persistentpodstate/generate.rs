//! Scenarios with a PersistentPodState.

use super::start::{APPS_STATEFULSETS, Edit, NAME, STATES, Start};
use crate::engine::{
    generate::{add_crashes, add_faults, add_steps, begin},
    random::{Purpose, Random},
    resource::{NODES, PODS, Resource},
    scenario::{Action, PodAction, Scenario, Step},
};

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, APPS_STATEFULSETS, STATES, NODES];

/// The pods, the edits and the faults.
const SCENARIO: Purpose = Purpose(1400);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 2_000;
/// This share of the seeds has a PersistentPodState.
const SHARE: u8 = 8;
/// Longest pause between two edits, in milliseconds.
const PAUSE: u64 = 10_000;
/// Most pods.
const MOST: u64 = 6;

/// The scenario of a seed, in a twelfth of them.
pub fn generate(seed: u64) -> Option<Scenario> {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    if !random.percent(SHARE) {
        return None;
    }
    let start = Start {
        nodes: random.between(3, 5) as u8,
        replicas: random.between(3, MOST) as u8,
        parallel: random.percent(60),
        keeps: random.percent(30),
    };
    let mut scenario = begin(seed, NAME, &start, random);
    let mut at = FIRST;
    for _ in 0..random.between(16, 26) {
        at += random.between(200, PAUSE);
        let what = action(random);
        scenario.steps.push(Step { at, what });
    }
    let end = at + random.between(5_000, 20_000);
    let count = random.between(10, 20);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager that ends between a record and the pod that it is of.
    add_crashes(&mut scenario, random, end);
    scenario.steps.sort_by_key(|step| step.at);
    if scenario.brief {
        add_steps(&mut scenario, WATCHED, action, |_| false);
    }
    Some(scenario)
}

fn action(random: &mut Random) -> Action {
    let number = random.between(0, MOST - 1) as u8;
    let edit = match random.between(0, 99) {
        0..30 => Edit::Scale(random.between(0, MOST) as u8),
        30..60 => Edit::Delete(number),
        60..68 => Edit::Keep(random.percent(40)),
        68..84 => return Action::Pod(PodAction::Unready(number, random.between(1_000, 20_000))),
        _ => return Action::Pod(PodAction::Crash(number)),
    };
    Action::edit(NAME, &edit)
}
