//! Scenarios with jobs that have sidecars.

use super::SUBJECT;
use super::start::{Edit, Job, Main, NAME, Sidecar, Start};
use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::REQUESTS;
use crate::subjects::node_agents;

/// A manager may end between the phase of a pod and the request for its sidecars.
const PLOT: Plot = Plot {
    purpose: Purpose(1600),
    watched: &[PODS, PODS, REQUESTS, REQUESTS, NODES],
    is_slow: false,
    crashes: true,
};

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let start = |random: &mut Random| Start {
        dying: random.one([0, 20, 50]),
    };
    PLOT.draw(&SUBJECT, seed, start, edits, |random, _| edit(random))
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, _: &Start) -> u64 {
    let mut at = 0;
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for _ in 0..random.between(16, 26) {
        at += random.between(200, 12_000);
        add(at, &edit(random));
    }
    for (node, release) in node_agents::releases() {
        add(at + 1, &Edit::Agent(node, release));
    }
    at + random.between(5_000, 20_000)
}

fn edit(random: &mut Random) -> Edit {
    match random.between(0, 99) {
        0..62 => Edit::Job(job(random)),
        62..68 => Edit::Delete(random.small(0, 20)),
        _ => {
            let node = random.small(1, node_agents::NODES);
            let number = random.between(0, node_agents::NUMBERS - 1);
            Edit::Agent(node, node_agents::drawn(number, random))
        }
    }
}

fn job(random: &mut Random) -> Job {
    let main = |random: &mut Random| Main {
        seconds: random.small(1, 20),
        code: random.maybe(20, |_| 3),
    };
    let sidecar = |random: &mut Random| Sidecar {
        ignored: random.percent(45),
        deaf: random.percent(40),
    };
    Job {
        pods: random.small(1, 2),
        never: random.percent(60),
        limit: random.small(0, 3),
        on_virtual: random.percent(15),
        mains: (0..random.between(1, 2)).map(|_| main(random)).collect(),
        sidecars: (0..random.between(1, 2)).map(|_| sidecar(random)).collect(),
    }
}
