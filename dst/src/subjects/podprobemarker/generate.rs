//! Scenarios with PodProbeMarkers.

use super::start::{Edit, MARKERS, NAME, PROBES, Start};
use crate::rules::prelude::*;

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
        nodes: random.small(2, 4),
        pods: random.small(4, 8),
        probes: [random.small(1, 2), random.small(1, 2)],
    };
    let mut scenario = begin(seed, NAME, &start, random);
    let end = edits(&mut scenario, random);
    let count = random.between(10, 20);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager that ends between the nodes of a marker that is deleted.
    add_crashes(&mut scenario, random, end);
    finish_edits(&mut scenario, WATCHED, NAME, edit, |_| false);
    scenario
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random) -> u64 {
    let mut at = FIRST;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for _ in 0..random.between(14, 24) {
        at += random.between(300, PAUSE);
        add(at, &edit(random));
    }
    // One marker is deleted for good.
    add(at + 1, &Edit::Again(1));
    add(at + 2, &Edit::Delete(random.small(0, 1)));
    at + random.between(5_000, 20_000)
}

fn edit(random: &mut Random) -> Edit {
    let place = random.small(0, 1);
    let pod = random.small(0, 7);
    match random.between(0, 99) {
        0..15 => Edit::Again(place),
        15..25 => Edit::Delete(place),
        25..40 => Edit::Probes(place, random.small(1, 2)),
        40..55 => Edit::Pod,
        55..68 => Edit::Remove(pod),
        68..80 => Edit::Label(pod, random.percent(60)),
        _ => Edit::Result(pod, random.text(&["Succeeded", "Failed", "Failed", "Unknown"])),
    }
}
