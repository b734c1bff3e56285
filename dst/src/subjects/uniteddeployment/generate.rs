//! Scenarios with a UnitedDeployment.

use super::start::{Edit, NAME, Size, Start, Subset, UNITED};
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[CLONESETS, UNITED, CLONESETS, PODS, REVISIONS];

/// The UnitedDeployment, the edits and the faults.
const SCENARIO: Purpose = Purpose(1400);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 4_000;
/// Longest pause between two edits, in milliseconds.
const PAUSE: u64 = 15_000;
/// The highest number of a subset.
const LAST: u64 = 3;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let start = Start {
        replicas: random.between(3, 8) as u32,
        // Of three replicas three subsets may name one each.
        subsets: topology(random, &["0", "1", "20%"]),
        recreates: random.percent(30),
        limit: random.one([1, 2, 3, 10]),
    };
    let mut scenario = begin(seed, NAME, &start, random);
    let mut at = FIRST;
    for _ in 0..random.between(9, 15) {
        at += random.between(200, PAUSE);
        scenario.push(at, Action::edit(NAME, &edit(random)));
    }
    let end = at + random.between(3_000, 15_000);
    let count = random.between(10, 20);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager that ends between a revision and workloads, between two of them, and before the status.
    add_crashes(&mut scenario, random, end);
    finish_edits(&mut scenario, WATCHED, NAME, edit, |_| false);
    scenario
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
