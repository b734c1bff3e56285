//! Scenarios with PodProbeMarkers.

use super::start::{Edit, MARKERS, NAME, PROBES, Start};
use crate::engine::{
    generate::{add_crashes, add_faults, begin, finish},
    random::{Purpose, Random},
    resource::{NODES, PODS, Resource},
    scenario::{Action, Scenario, Step},
};

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PROBES, PROBES, PODS, MARKERS, NODES];

/// The pods, the edits and the faults.
const SCENARIO: Purpose = Purpose(1200);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 2_000;
/// Longest pause between two edits, in milliseconds.
const PAUSE: u64 = 10_000;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let start = Start {
        nodes: random.between(2, 4) as u8,
        pods: random.between(4, 8) as u8,
        probes: [random.between(1, 2) as u8, random.between(1, 2) as u8],
    };
    let mut scenario = begin(seed, NAME, &start, random);
    let end = edits(&mut scenario, random);
    let count = random.between(10, 20);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager that ends between the nodes of a marker that is deleted.
    add_crashes(&mut scenario, random, end);
    finish(&mut scenario, WATCHED, |random| action(&edit(random)), |_| false);
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
    for _ in 0..random.between(14, 24) {
        at += random.between(300, PAUSE);
        add(at, &edit(random));
    }
    // One marker is deleted for good.
    add(at + 1, &Edit::Again(1));
    add(at + 2, &Edit::Delete(random.between(0, 1) as u8));
    at + random.between(5_000, 20_000)
}

fn edit(random: &mut Random) -> Edit {
    let place = random.between(0, 1) as u8;
    let pod = random.between(0, 7) as u8;
    match random.between(0, 99) {
        0..15 => Edit::Again(place),
        15..25 => Edit::Delete(place),
        25..40 => Edit::Probes(place, random.between(1, 2) as u8),
        40..55 => Edit::Pod,
        55..68 => Edit::Remove(pod),
        68..80 => Edit::Label(pod, random.percent(60)),
        _ => Edit::Result(pod, random.text(&["Succeeded", "Failed", "Failed", "Unknown"])),
    }
}
