//! Scenarios with a PersistentPodState: those of a StatefulSet, and more that makes pods and nodes come and go.

use super::start::{Edit, Keys, NAME, STATES, Start};
use crate::{
    engine::{
        generate::{add_crashes, add_faults, finish},
        random::{Purpose, Random},
        resource::{NODES, PODS, Resource},
        scenario::{Action, PodAction, Scenario, Step},
    },
    subjects::statefulset::{
        self,
        edit::Edit as WorkloadEdit,
        start::{NAME as STATEFULSET, STATEFULSETS},
    },
};

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
    let start = serde_json::to_value(&start).unwrap_or_default();
    scenario.subjects.insert(NAME.to_owned(), start);
    scenario
}

/// Required and preferred keys, not none of both.
fn keys(random: &mut Random) -> (Keys, Keys) {
    let any = |random: &mut Random| {
        let all = [Keys::None, Keys::Zone, Keys::Host, Keys::Both];
        random.pick(&all).copied().unwrap_or(Keys::Zone)
    };
    match (any(random), any(random)) {
        (Keys::None, Keys::None) => (Keys::Host, Keys::Zone),
        keys => keys,
    }
}

/// Adds what users do, and faults that matter to records.
fn add(scenario: &mut Scenario, random: &mut Random, start: &Start) {
    let last = scenario.steps.iter().map(|step| step.at).max();
    let end = last.unwrap_or(0).max(LEAST);
    let begins = if start.asked {
        action(&Edit::Ask(start.required, start.preferred))
    } else {
        action(&Edit::Create)
    };
    let mut add = |at, what| scenario.steps.push(Step { at, what });
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
        |what| what.edit_of(NAME).is_some_and(|edit: Edit| edit.is_release()),
    );
}

fn action(edit: &Edit) -> Action {
    Action::edit(NAME, edit)
}

/// Half of what happens makes a pod come anew.
fn step(random: &mut Random, start: &Start) -> Action {
    if random.percent(50) {
        let pod = random.between(0, REPLICAS) as u8;
        return Action::Pod(PodAction::Delete(pod));
    }
    let edit = if random.percent(40) {
        Edit::Unlabel(random.between(0, 2) as u8)
    } else if start.asked {
        of_annotations(random)
    } else {
        of_users(random)
    };
    action(&edit)
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
        60..74 => {
            let keys = [Keys::Zone, Keys::Host, Keys::Both];
            Edit::Spoil(random.pick(&keys).copied().unwrap_or(Keys::Zone))
        }
        74..84 => Edit::Remove,
        84..96 => Edit::Foreign,
        _ => Edit::Create,
    }
}
