//! Scenarios with ContainerRecreateRequests.

use super::start::{Edit, NAME, REQUESTS, Recreate, Start};
use crate::engine::{
    generate::{add_crashes, add_faults, begin, finish},
    random::{Purpose, Random},
    resource::{PODS, Resource},
    scenario::{Action, Scenario, Step},
};
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
        pods: random.between(5, 8) as u8,
        ungated: random.between(0, 2) as u8,
        dying: *random.pick(&[0, 20, 50]).unwrap_or(&0),
    };
    let pods = start.pods;
    let mut scenario = begin(seed, NAME, &start, random);
    let end = edits(&mut scenario, random, pods);
    let count = random.between(10, 20);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager that ends between finalizer, pod and condition.
    add_crashes(&mut scenario, random, end);
    finish(
        &mut scenario,
        WATCHED,
        |random| action(&edit(random, pods)),
        |what| what.edit_of::<Edit>(NAME).is_some_and(|edit| edit.is_release()),
    );
    scenario
}

fn action(edit: &Edit) -> Action {
    Action::edit(NAME, edit)
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, pods: u8) -> u64 {
    let mut at = FIRST;
    let mut add = |at, edit: &Edit| {
        let what = action(edit);
        scenario.steps.push(Step { at, what });
    };
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
        grace: random.percent(50).then(|| random.between(0, 5) as u8),
        started: if random.percent(25) {
            random.between(1, 4) as u8
        } else {
            0
        },
        unready: random.percent(60).then(|| random.between(0, 6) as u8),
        deadline: random.percent(25).then(|| random.between(3, 40) as u8),
        ttl: random.percent(60).then(|| random.between(0, 20) as u8),
    }
}

fn edit(random: &mut Random, pods: u8) -> Edit {
    let pod = random.between(0, u64::from(pods) - 1) as u8;
    let node = random.between(1, u64::from(NODES)) as u8;
    match random.between(0, 99) {
        0..58 => Edit::Request(pod, recreate(random)),
        58..66 => Edit::Delete(random.between(0, 20) as u8),
        66..76 => Edit::Pod(pod),
        other => Edit::Agent(node, node_agents::drawn(other - 76, random)),
    }
}
