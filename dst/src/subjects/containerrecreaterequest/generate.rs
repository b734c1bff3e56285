//! Scenarios with ContainerRecreateRequests.

use super::start::{Edit, NAME, REQUESTS, Recreate, Start};
use crate::rules::prelude::*;
use crate::subjects::node_agents::{self, AgentEdit};

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, REQUESTS];

/// The pods, the requests and the faults.
const SCENARIO: Purpose = Purpose(1000);

/// What users do begins after this many milliseconds: pods run then.
const FIRST: u64 = 10_000;
/// Longest pause between two edits, in milliseconds.
const PAUSE: u64 = 9_000;
/// Nodes.
const NODES: u8 = 3;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let start = Start {
        pods: random.small(5, 8),
        ungated: random.small(0, 2),
        dying: random.one([0, 20, 50]),
    };
    let pods = start.pods;
    let mut scenario = begin(seed, NAME, &start, random);
    let end = edits(&mut scenario, random, pods);
    let count = random.between(10, 20);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager that ends between finalizer, pod and condition.
    add_crashes(&mut scenario, random, end);
    finish_edits(
        &mut scenario,
        WATCHED,
        NAME,
        |random| edit(random, pods),
        Edit::is_release,
    );
    scenario
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, pods: u8) -> u64 {
    let mut at = FIRST;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for _ in 0..random.between(16, 26) {
        at += random.between(200, PAUSE);
        add(at, &edit(random, pods));
    }
    for number in 1..=NODES {
        for release in AgentEdit::RELEASES {
            add(at + 1, &Edit::Agent(number, release));
        }
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

fn edit(random: &mut Random, pods: u8) -> Edit {
    let pod = random.small(0, u64::from(pods) - 1);
    let node = random.small(1, u64::from(NODES));
    match random.between(0, 99) {
        0..58 => Edit::Request(pod, recreate(random)),
        58..66 => Edit::Delete(random.small(0, 20)),
        66..76 => Edit::Pod(pod),
        other => Edit::Agent(node, node_agents::drawn(other - 76, random)),
    }
}
