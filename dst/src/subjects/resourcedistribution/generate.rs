//! Scenarios with a ResourceDistribution.

use super::start::{DISTRIBUTIONS, Edit, NAME, SECRETS, Start, Targets};
use crate::engine::{
    generate::{add_crashes, add_faults, begin, finish},
    random::{Purpose, Random},
    resource::{CONFIGMAPS, NAMESPACES, Resource},
    scenario::{Action, Scenario, Step},
};

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[SECRETS, CONFIGMAPS, NAMESPACES, DISTRIBUTIONS];

/// The ResourceDistribution, the edits and the faults.
const SCENARIO: Purpose = Purpose(1100);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 2_000;
/// This share of the seeds has a ResourceDistribution.
const SHARE: u8 = 8;
/// Longest pause between two edits, in milliseconds.
const PAUSE: u64 = 10_000;
/// Namespaces that there may be.
const NAMESPACES_AT_MOST: u64 = 9;

/// The scenario of a seed, in a twelfth of them.
pub fn generate(seed: u64) -> Option<Scenario> {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    if !random.percent(SHARE) {
        return None;
    }
    let start = Start {
        namespaces: random.between(3, 6) as u8,
        secret: random.percent(60),
        targets: targets(random),
    };
    let mut scenario = begin(seed, NAME, &start, random);
    let mut at = FIRST;
    for _ in 0..random.between(14, 22) {
        at += random.between(200, PAUSE);
        let what = Action::edit(NAME, &edit(random));
        scenario.steps.push(Step { at, what });
    }
    let end = at + random.between(3_000, 15_000);
    let count = random.between(10, 20);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager that ends between two copies, and between copies and the status.
    add_crashes(&mut scenario, random, end);
    finish(
        &mut scenario,
        WATCHED,
        |random| Action::edit(NAME, &edit(random)),
        |_| false,
    );
    Some(scenario)
}

fn targets(random: &mut Random) -> Targets {
    if random.percent(50) {
        Targets::All
    } else {
        Targets::Team(random.percent(50))
    }
}

fn edit(random: &mut Random) -> Edit {
    let number = random.between(0, NAMESPACES_AT_MOST) as u8;
    match random.between(0, 99) {
        0..15 => Edit::Namespace(number, random.percent(50)),
        15..28 => Edit::Team(number, random.percent(50)),
        28..32 => Edit::Leave(number),
        32..44 => Edit::Data(random.between(0, 5) as u8),
        44..56 => Edit::Targets(targets(random)),
        56..70 => Edit::ChangeCopy(number, random.between(0, 5) as u8),
        70..76 => Edit::LabelCopy(number),
        76..88 => Edit::DeleteCopy(number),
        _ => Edit::Foreign(number),
    }
}
