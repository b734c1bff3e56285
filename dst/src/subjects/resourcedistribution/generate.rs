//! Scenarios with a ResourceDistribution.

use super::SUBJECT;
use super::start::{DISTRIBUTIONS, Edit, NAME, SECRETS, Start, Targets};
use crate::rules::prelude::*;

/// A manager may end between two copies, and between copies and the status.
const PLOT: Plot = Plot {
    purpose: Purpose(1100),
    watched: &[SECRETS, CONFIGMAPS, NAMESPACES, DISTRIBUTIONS],
    is_slow: false,
    crashes: true,
};

/// Namespaces that there may be.
const NAMESPACES_AT_MOST: u64 = 9;
/// In this share of the scenarios updates of copies are refused, in more namespaces than one reconcile reads.
const REFUSED: u8 = 15;
/// Namespaces then.
const CROWD: u64 = 40;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    PLOT.draw(&SUBJECT, seed, start, edits, edit)
}

fn start(random: &mut Random) -> Start {
    let refused = random.percent(REFUSED);
    Start {
        namespaces: if refused { CROWD } else { random.between(3, 6) } as u8,
        secret: random.percent(60),
        targets: if refused { Targets::All } else { targets(random) },
        refused,
    }
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, start: &Start) -> u64 {
    let mut at = 2_000;
    for _ in 0..random.between(14, 22) {
        at += random.between(200, 10_000);
        scenario.edit(at, NAME, &edit(random, start));
    }
    at + random.between(3_000, 15_000)
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

fn edit(random: &mut Random, start: &Start) -> Edit {
    if start.refused {
        return edit_of_refused(random);
    }
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
