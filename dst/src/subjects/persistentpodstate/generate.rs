//! Scenarios with a PersistentPodState: those of a StatefulSet, and more that makes pods and nodes come and go.

use super::SUBJECT;
use super::start::{Edit, Keys, NAME, STATES, Start};
use crate::rules::prelude::*;
use crate::subjects::statefulset;
use crate::subjects::statefulset::edit::Edit as WorkloadEdit;
use crate::subjects::statefulset::start::{NAME as STATEFULSET, STATEFULSETS};

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, STATES, STATES, NODES, STATEFULSETS];

/// The PersistentPodState, its edits, and what users do to pods and nodes.
const SCENARIO: Purpose = Purpose(1500);
/// The StatefulSet below it.
const BELOW: Purpose = Purpose(1501);
/// Most replicas of the StatefulSet.
const REPLICAS: u64 = 9;
/// Everything but the end happens before, in milliseconds, if the StatefulSet takes no longer.
const LEAST: u64 = 90_000;
/// Longest time that a node is away, in milliseconds.
const AWAY: u64 = 20_000;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let (required, preferred) = keys(random);
    let start = Start {
        required,
        preferred,
        keeps: random.percent(25),
        annotated: random.percent(40),
        asked: random.percent(35),
        at_first: random.percent(75),
    };
    let mut scenario = statefulset::generate::draw(seed, &mut Random::new(seed, BELOW));
    scenario.managers = 2;
    add(&mut scenario, random, &start);
    scenario.add(NAME, &start);
    scenario
}

/// Required and preferred keys, not none of both.
fn keys(random: &mut Random) -> (Keys, Keys) {
    let any = |random: &mut Random| random.one([Keys::None, Keys::Zone, Keys::Host, Keys::Both]);
    match (any(random), any(random)) {
        (Keys::None, Keys::None) => (Keys::Host, Keys::Zone),
        keys => keys,
    }
}

/// Adds what users do, and faults that matter to records.
fn add(scenario: &mut Scenario, random: &mut Random, start: &Start) {
    let end = scenario.end(LEAST);
    let begins = if start.asked {
        Action::edit(NAME, &Edit::Ask(start.required, start.preferred))
    } else {
        Action::edit(NAME, &Edit::Create)
    };
    let mut add = |at, what| scenario.push(at, what);
    if !start.at_first {
        add(random.between(2_000, end / 3), begins.clone());
    } else if start.asked {
        add(200, begins.clone());
    }
    for _ in 0..random.between(14, 22) {
        add(random.between(4_000, end), step(random, start));
    }
    for _ in 0..random.between(2, 4) {
        let at = random.between(10_000, end);
        let back = random.between(3, REPLICAS) as u32;
        // Some pods still run when they are wanted again.
        add(at, Action::edit(STATEFULSET, &WorkloadEdit::Scale(0)));
        let at = at + random.between(500, 20_000);
        add(at, Action::edit(STATEFULSET, &WorkloadEdit::Scale(back)));
    }
    for _ in 0..random.between(1, 3) {
        let lasts = random.between(3_000, AWAY);
        add(random.between(0, end), Action::NodeLost(lasts));
    }
    add(end + AWAY + 1, begins);
    let count = random.between(4, 8);
    add_faults(scenario, random, WATCHED, count, end);
    add_crashes(scenario, random, end);
    finish(
        scenario,
        WATCHED,
        |random| step(random, start),
        |what| SUBJECT.releases(what),
    );
}

/// Half of what happens makes a pod come anew.
fn step(random: &mut Random, start: &Start) -> Action {
    if random.percent(50) {
        let pod = random.small(0, REPLICAS);
        return Action::Pod(PodAction::Delete(pod));
    }
    let edit = if random.percent(40) {
        Edit::Unlabel(random.small(0, 2))
    } else if start.asked {
        of_annotations(random)
    } else {
        of_users(random)
    };
    Action::edit(NAME, &edit)
}

/// An edit where users create the PersistentPodState.
fn of_users(random: &mut Random) -> Edit {
    match random.between(0, 99) {
        0..55 => {
            let (required, preferred) = keys(random);
            Edit::Keys(required, preferred)
        }
        55..65 => Edit::Delete,
        65..80 => Edit::Create,
        80..87 => {
            let (required, preferred) = keys(random);
            Edit::Ask(required, preferred)
        }
        87..91 => Edit::Withdraw,
        91..95 => Edit::Foreign,
        _ => Edit::Remove,
    }
}

/// An edit where annotations ask for it.
fn of_annotations(random: &mut Random) -> Edit {
    match random.between(0, 99) {
        0..48 => {
            let (required, preferred) = keys(random);
            Edit::Ask(required, preferred)
        }
        48..60 => Edit::Withdraw,
        60..74 => Edit::Spoil(random.one([Keys::Zone, Keys::Host, Keys::Both])),
        74..84 => Edit::Remove,
        84..96 => Edit::Foreign,
        _ => Edit::Create,
    }
}
