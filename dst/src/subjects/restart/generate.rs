//! Scenarios in which the containers of a CloneSet are restarted.

use super::start::{Edit, NAME, Order, Start};
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::{CLONESETS, NAME as CLONESET};
use crate::subjects::cloneset::edit::Edit as SetEdit;
use crate::subjects::cloneset::start::{Policy, Start as Set};
use crate::subjects::containerrecreaterequest::start::{
    Edit as RequestEdit, NAME as REQUEST, Start as Agents,
};
use crate::subjects::containerrecreaterequest::{self, REQUESTS};
use crate::subjects::node_agents;

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, REQUESTS, REQUESTS, CLONESETS];

/// The CloneSet, the runs and the faults.
const SCENARIO: Purpose = Purpose(1700);

/// What users do begins after this many milliseconds: pods run then.
const FIRST: u64 = 9_000;
/// Most replicas.
const MOST: u64 = 9;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let set = set(random);
    let agents = Agents {
        pods: 0,
        ungated: 0,
        dying: random.one([0, 0, 10, 40]),
    };
    let start = Start {
        last: Order {
            timeout: 120,
            ..order(random, &set)
        },
    };
    let mut scenario = begin(seed, CLONESET, &set, random);
    scenario.add(REQUEST, &agents);
    scenario.add(NAME, &start);
    let end = edits(&mut scenario, random, &set);
    let count = random.between(8, 16);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager, an agent or a command that ends between two writes that belong together.
    add_crashes(&mut scenario, random, end);
    finish(
        &mut scenario,
        WATCHED,
        |random| edit(random, &set),
        |what| containerrecreaterequest::SUBJECT.releases(what),
    );
    scenario
}

fn set(random: &mut Random) -> Set {
    let policy = random.either(70, Policy::InPlaceIfPossible, Policy::ReCreate);
    Set {
        max_unavailable: random.text(&["1", "1", "2", "30%", "40%"]),
        min_ready_seconds: random.maybe(20, |_| 3),
        batches: random.percent(40),
        ..Set::plain(random.between(5, 8) as u32, policy)
    }
}

fn order(random: &mut Random, set: &Set) -> Order {
    Order {
        both: set.batches && random.percent(60),
        ordered: random.percent(40),
        unready: random.percent(40).then(|| random.small(0, 5)),
        timeout: random.one([15, 40, 90, 120]),
        keep: random.small(60, 75),
    }
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, set: &Set) -> u64 {
    let mut at = FIRST;
    let mut add = |at, what| scenario.push(at, what);
    add(at, Action::edit(NAME, &Edit::Run(order(random, set))));
    for _ in 0..random.between(16, 26) {
        at += random.between(200, 9_000);
        add(at, edit(random, set));
    }
    for (node, release) in node_agents::releases() {
        add(at + 1, of_request(&RequestEdit::Agent(node, release)));
    }
    at + random.between(5_000, 20_000)
}

fn of_request(edit: &RequestEdit) -> Action {
    Action::edit(REQUEST, edit)
}

fn edit(random: &mut Random, set: &Set) -> Action {
    let node = random.small(1, node_agents::NODES);
    let of_set = |edit: &SetEdit| Action::edit(CLONESET, edit);
    let runs = |edit: &Edit| Action::edit(NAME, edit);
    match random.between(0, 99) {
        0..28 => runs(&Edit::Run(order(random, set))),
        28..34 => runs(&Edit::Beside(order(random, set))),
        34..44 => runs(&Edit::Again(order(random, set))),
        44..50 => runs(&Edit::Interrupt),
        50..58 => of_set(&SetEdit::Scale(random.between(5, MOST) as u32)),
        58..66 => {
            let most = random.text(&["1", "2", "3", "0", "30%"]);
            of_set(&SetEdit::MaxUnavailable(most))
        }
        66..69 => of_set(&SetEdit::Image(random.between(1, 4) as u32)),
        69..73 => removal(random, MOST),
        73..76 => of_request(&RequestEdit::Delete(random.small(0, 20))),
        other => of_request(&RequestEdit::Agent(node, node_agents::drawn(other - 76, random))),
    }
}
