//! Scenarios with a UnitedDeployment.

use super::SUBJECT;
use super::start::{Edit, NAME, Size, Start, Subset, UNITED};
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;

/// A manager may end between a revision and workloads, between two of them, and before the status.
const PLOT: Plot = Plot {
    purpose: Purpose(1400),
    watched: &[CLONESETS, UNITED, CLONESETS, PODS, REVISIONS],
    is_slow: false,
    crashes: true,
};

/// The highest number of a subset.
const LAST: u64 = 3;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    PLOT.draw(&SUBJECT, seed, start, edits, |random, _| edit(random))
}

fn start(random: &mut Random) -> Start {
    Start {
        replicas: random.between(3, 8) as u32,
        // Of three replicas three subsets may name one each.
        subsets: topology(random, &["0", "1", "20%"]),
        recreates: random.percent(30),
        limit: random.one([1, 2, 3, 10]),
    }
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, _: &Start) -> u64 {
    let mut at = 4_000;
    for _ in 0..random.between(9, 15) {
        at += random.between(200, 15_000);
        scenario.edit(at, NAME, &edit(random));
    }
    at + random.between(3_000, 15_000)
}

/// One subset at least, and one at least that takes any number of pods. Replicas of the others are named, or bounded.
fn topology(random: &mut Random, named: &[&str]) -> Vec<Subset> {
    let free = random.small(0, LAST);
    let bounded = random.percent(35);
    let mut subsets = Vec::new();
    for number in 0..=LAST as u8 {
        let is_free = number == free;
        if !is_free && !random.percent(45) {
            continue;
        }
        let size = match (bounded, is_free) {
            (true, true) => Size::Between(random.between(0, 1) as u32, None),
            (true, false) => {
                let min = random.between(0, 2) as u32;
                Size::Between(min, Some(min + random.between(0, 2) as u32))
            }
            (false, false) if random.percent(40) => Size::Is(random.text(named)),
            (false, _) => Size::Free,
        };
        subsets.push((number, size));
    }
    subsets
}

fn edit(random: &mut Random) -> Edit {
    let number = random.small(0, LAST);
    match random.between(0, 99) {
        0..18 => Edit::Image(random.between(1, 5) as u32),
        18..25 => Edit::Env(random.between(0, 3) as u32),
        25..43 => Edit::Scale(random.between(0, 9) as u32),
        43..55 => Edit::Topology(topology(random, &["0", "1", "1", "2", "20%", "40%"])),
        55..68 => Edit::Partition(number, random.between(0, 4) as u32),
        68..74 => Edit::Everywhere,
        74..81 => Edit::ChildReplicas(number, random.between(0, 6) as u32),
        81..86 => Edit::ChildPartition(number, random.between(0, 4) as u32),
        86..93 => Edit::DeleteChild(number),
        93..97 => Edit::Foreign(number),
        _ => Edit::Replace(random.percent(60)),
    }
}
