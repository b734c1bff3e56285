//! Scenarios with a DaemonSet.

use super::SUBJECT;
use super::edit::Edit;
use super::start::{DAEMONSETS, NAME, Start, Strategy};
use crate::rules::prelude::*;
use crate::subjects::hooks::Mark;
use crate::subjects::nodes::{any_pool as pool, lost_for_a_while, random as node_edit};

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, DAEMONSETS, REVISIONS, NODES, NODES];

/// The DaemonSet, its edits and the faults.
const SCENARIO: Purpose = Purpose(400);
/// Most nodes that there ever are.
const NUMBERS: u64 = 11;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let start = start(random);
    let mut scenario = begin(seed, NAME, &start, random);
    let mut image = 1;
    let end = edits(&mut scenario, random, &mut image);
    let count = faults(&scenario, random);
    add_faults(&mut scenario, random, WATCHED, count, end);
    let draw = |random: &mut Random| Action::edit(NAME, &edit(random, &mut image));
    finish(&mut scenario, WATCHED, draw, |what| SUBJECT.releases(what));
    scenario
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, image: &mut u32) -> u64 {
    let mut at = 1_000;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    let count = random.between(10, 14);
    for number in 0..count {
        at += pause(random, 35);
        if number == 0 || number + 1 == count {
            *image += 1;
            add(at, &Edit::Image(*image));
        } else {
            add(at, &edit(random, image));
        }
    }
    for (at, (node, edit)) in lost_for_a_while(random, NUMBERS, at, &["False", "Unknown", "Unknown"], 60_000)
    {
        add(at, &Edit::Node(node, edit));
    }
    if random.percent(10) {
        let from = random.between(2_000, at);
        add(from, &Edit::OnDelete(true));
        add(from + random.between(3_000, 40_000), &Edit::OnDelete(false));
    }
    // A rollout that is paused at the end would show little.
    add(at + 1, &Edit::Paused(false));
    at + random.between(5_000, 30_000)
}

fn start(random: &mut Random) -> Start {
    let strategy = strategy(random);
    let mark = Mark::any(random);
    let partition = random.maybe(35, partition);
    Start {
        nodes: random.small(5, 9),
        strategy,
        partitioned_scaling: !partition.is_empty() && random.percent(40),
        partition,
        selector: random.maybe(15, pool),
        burst: random.maybe(35, burst),
        min_ready_seconds: random.maybe(25, |random| random.between(1, 5) as u32),
        pool: random.maybe(15, pool),
        pre_delete: random.percent(25).then_some((mark, random.percent(50))),
        prunes: random.percent(30),
    }
}

fn strategy(random: &mut Random) -> Strategy {
    let most = random.text(&["1", "1", "2", "20%", "30%", "50%"]);
    match random.between(0, 9) {
        0..4 => Strategy::InPlace(most),
        4..7 => Strategy::Standard(most),
        _ => Strategy::Surge(most),
    }
}

fn partition(random: &mut Random) -> String {
    random.text(&["0", "1", "2", "3", "5", "30%", "50%", "100%"])
}

fn burst(random: &mut Random) -> String {
    random.text(&["1", "2", "3", "10%", "40%"])
}

/// A drawn text, but none with this probability in percent.
fn unless(random: &mut Random, percent: u8, draw: impl FnOnce(&mut Random) -> String) -> String {
    if random.percent(percent) {
        String::new()
    } else {
        draw(random)
    }
}

/// An edit. A new image has the next number.
fn edit(random: &mut Random, image: &mut u32) -> Edit {
    match random.between(0, 99) {
        0..24 => {
            *image += 1;
            Edit::Image(*image)
        }
        24..31 => Edit::Image(random.between(1, u64::from(*image)) as u32),
        31..36 => Edit::Env(random.between(1, 9) as u32),
        36..39 => Edit::Annotation(random.between(1, 9) as u32),
        39..45 => Edit::Strategy(strategy(random)),
        45..51 => Edit::Partition(unless(random, 40, partition)),
        51..55 => Edit::Selector(unless(random, 50, pool)),
        55..58 => Edit::Paused(random.percent(50)),
        58..60 => Edit::MinReady(random.between(0, 4) as u32),
        60..62 => Edit::Burst(burst(random)),
        62..65 => Edit::Pool(unless(random, 60, pool)),
        65..68 => Edit::Tolerate(random.percent(50)),
        _ => Edit::Node(random.small(1, NUMBERS), node_edit(random)),
    }
}
