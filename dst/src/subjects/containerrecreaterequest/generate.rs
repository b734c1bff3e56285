//! Scenarios with ContainerRecreateRequests.

use super::SUBJECT;
use super::start::{Edit, NAME, REQUESTS, Recreate, Start};
use crate::rules::prelude::*;
use crate::subjects::node_agents;

/// A manager may end between finalizer, pod and condition.
const PLOT: Plot = Plot {
    purpose: Purpose(1000),
    watched: &[PODS, PODS, REQUESTS],
    is_slow: false,
    crashes: true,
};

/// What users do begins after this many milliseconds: pods run then.
const FIRST: u64 = 10_000;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    PLOT.draw(&SUBJECT, seed, start, edits, edit)
}

fn start(random: &mut Random) -> Start {
    Start {
        pods: random.small(5, 8),
        ungated: random.small(0, 2),
        dying: random.one([0, 20, 50]),
    }
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, start: &Start) -> u64 {
    let mut at = FIRST;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for _ in 0..random.between(16, 26) {
        at += random.between(200, 9_000);
        add(at, &edit(random, start));
    }
    for (node, release) in node_agents::releases() {
        add(at + 1, &Edit::Agent(node, release));
    }
    at + random.between(5_000, 20_000)
}

fn recreate(random: &mut Random) -> Recreate {
    Recreate {
        all: random.percent(50),
        ordered: random.percent(40),
        force: random.percent(40),
        grace: random.percent(50).then(|| random.small(0, 5)),
        started: random.maybe(25, |random| random.small(1, 4)),
        unready: random.percent(60).then(|| random.small(0, 6)),
        deadline: random.percent(25).then(|| random.small(3, 40)),
        ttl: random.percent(60).then(|| random.small(0, 20)),
    }
}

fn edit(random: &mut Random, start: &Start) -> Edit {
    let pod = random.small(0, u64::from(start.pods) - 1);
    let node = random.small(1, node_agents::NODES);
    match random.between(0, 99) {
        0..58 => Edit::Request(pod, recreate(random)),
        58..66 => Edit::Delete(random.small(0, 20)),
        66..76 => Edit::Pod(pod),
        other => Edit::Agent(node, node_agents::drawn(other - 76, random)),
    }
}
