//! Scenarios with a ResourceDistribution.

use super::start::{DISTRIBUTIONS, Edit, NAME, SECRETS, Start, Targets};
use crate::rules::prelude::*;

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[SECRETS, CONFIGMAPS, NAMESPACES, DISTRIBUTIONS];

/// The ResourceDistribution, the edits and the faults.
const SCENARIO: Purpose = Purpose(1100);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 2_000;
/// Longest pause between two edits, in milliseconds.
const PAUSE: u64 = 10_000;
/// Namespaces that there may be.
const NAMESPACES_AT_MOST: u64 = 9;
/// In this share of the scenarios updates of copies are refused, in more namespaces than one reconcile reads.
const REFUSED: u8 = 15;
/// Namespaces then.
const CROWD: u64 = 40;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let refused = random.percent(REFUSED);
    let start = Start {
        namespaces: if refused { CROWD } else { random.between(3, 6) } as u8,
        secret: random.percent(60),
        targets: if refused { Targets::All } else { targets(random) },
        refused,
    };
    let edit = if refused { edit_of_refused } else { edit };
    let mut scenario = begin(seed, NAME, &start, random);
    let mut at = FIRST;
    for _ in 0..random.between(14, 22) {
        at += random.between(200, PAUSE);
        scenario.push(at, Action::edit(NAME, &edit(random)));
    }
    let end = at + random.between(3_000, 15_000);
    let count = random.between(10, 20);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager that ends between two copies, and between copies and the status.
    add_crashes(&mut scenario, random, end);
    finish_edits(&mut scenario, WATCHED, NAME, edit, |_| false);
    scenario
}

fn targets(random: &mut Random) -> Targets {
    if random.percent(50) {
        Targets::All
    } else {
        Targets::Team(random.percent(50))
    }
}

/// All copies but the new ones keep the data that they were created with.
fn edit_of_refused(random: &mut Random) -> Edit {
    let number = random.small(1, CROWD);
    match random.between(0, 99) {
        0..20 => Edit::Namespace((CROWD + random.between(1, 3)) as u8, random.percent(50)),
        20..60 => Edit::Data(random.small(1, 5)),
        60..75 => Edit::ChangeCopy(number, random.small(0, 5)),
        75..85 => Edit::DeleteCopy(number),
        _ => Edit::Foreign(number),
    }
}

fn edit(random: &mut Random) -> Edit {
    let number = random.small(0, NAMESPACES_AT_MOST);
    match random.between(0, 99) {
        0..15 => Edit::Namespace(number, random.percent(50)),
        15..28 => Edit::Team(number, random.percent(50)),
        28..32 => Edit::Leave(number),
        32..44 => Edit::Data(random.small(0, 5)),
        44..56 => Edit::Targets(targets(random)),
        56..70 => Edit::ChangeCopy(number, random.small(0, 5)),
        70..76 => Edit::LabelCopy(number),
        76..88 => Edit::DeleteCopy(number),
        _ => Edit::Foreign(number),
    }
}
