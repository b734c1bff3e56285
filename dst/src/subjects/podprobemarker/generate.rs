//! Scenarios with PodProbeMarkers.

use super::SUBJECT;
use super::start::{Edit, MARKERS, NAME, PROBES, Start};
use crate::rules::prelude::*;

/// A manager may end between the nodes of a marker that is deleted.
const PLOT: Plot = Plot {
    purpose: Purpose(1200),
    watched: &[PROBES, PROBES, PODS, MARKERS, NODES],
    is_slow: false,
    crashes: true,
};

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    PLOT.draw(&SUBJECT, seed, start, edits, |random, _| edit(random))
}

fn start(random: &mut Random) -> Start {
    Start {
        nodes: random.small(2, 4),
        pods: random.small(4, 8),
        probes: [random.small(1, 2), random.small(1, 2)],
    }
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, _: &Start) -> u64 {
    let mut at = 2_000;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for _ in 0..random.between(14, 24) {
        at += random.between(300, 10_000);
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
