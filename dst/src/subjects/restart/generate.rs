//! Scenarios in which the containers of a CloneSet are restarted.

use super::start::{Edit, NAME, Order, Start};
use crate::{
    engine::{
        generate::{add_crashes, add_faults, begin, finish, removal},
        random::{Purpose, Random},
        resource::{PODS, Resource},
        scenario::{Action, Scenario, Step},
    },
    subjects::{
        cloneset::{
            draft::{CLONESETS, NAME as CLONESET},
            edit::Edit as SetEdit,
            start::{Policy, Start as Set},
        },
        containerrecreaterequest::{
            REQUESTS,
            start::{Edit as RequestEdit, NAME as REQUEST, Start as Agents},
        },
        node_agents::{self, AgentEdit},
    },
};

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, REQUESTS, REQUESTS, CLONESETS];

/// The CloneSet, the runs and the faults.
const SCENARIO: Purpose = Purpose(1700);

/// What users do begins after this many milliseconds: pods run then.
const FIRST: u64 = 9_000;
/// Longest pause between two edits, in milliseconds.
const PAUSE: u64 = 9_000;
/// Nodes.
const NODES: u8 = 3;
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
        dying: *random.pick(&[0, 0, 10, 40]).unwrap_or(&0),
    };
    let start = Start {
        last: Order {
            timeout: 120,
            ..order(random, &set)
        },
    };
    let mut scenario = begin(seed, CLONESET, &set, random);
    let mut add = |name: &str, start: serde_json::Result<serde_json::Value>| {
        let start = start.unwrap_or_default();
        scenario.subjects.insert(name.to_owned(), start);
    };
    add(REQUEST, serde_json::to_value(&agents));
    add(NAME, serde_json::to_value(&start));
    let end = edits(&mut scenario, random, &set);
    let count = random.between(8, 16);
    add_faults(&mut scenario, random, WATCHED, count, end);
    // A manager, an agent or a command that ends between two writes that belong together.
    add_crashes(&mut scenario, random, end);
    finish(
        &mut scenario,
        WATCHED,
        |random| edit(random, &set),
        |what| {
            what.edit_of::<RequestEdit>(REQUEST)
                .is_some_and(|edit| edit.is_release())
        },
    );
    scenario
}

fn set(random: &mut Random) -> Set {
    let policy = if random.percent(70) {
        Policy::InPlaceIfPossible
    } else {
        Policy::ReCreate
    };
    Set {
        max_unavailable: random.text(&["1", "1", "2", "30%", "40%"]),
        min_ready_seconds: if random.percent(20) { 3 } else { 0 },
        batches: random.percent(40),
        ..Set::plain(random.between(5, 8) as u32, policy)
    }
}

fn order(random: &mut Random, set: &Set) -> Order {
    Order {
        both: set.batches && random.percent(60),
        ordered: random.percent(40),
        unready: random.percent(40).then(|| random.between(0, 5) as u8),
        timeout: *random.pick(&[15, 40, 90, 120]).unwrap_or(&90),
        keep: random.between(60, 75) as u8,
    }
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, set: &Set) -> u64 {
    let mut at = FIRST;
    let mut add = |at, what| scenario.steps.push(Step { at, what });
    add(at, Action::edit(NAME, &Edit::Run(order(random, set))));
    for _ in 0..random.between(16, 26) {
        at += random.between(200, PAUSE);
        add(at, edit(random, set));
    }
    for number in 1..=NODES {
        for release in AgentEdit::RELEASES {
            add(
                at + 1,
                Action::edit(REQUEST, &RequestEdit::Agent(number, release)),
            );
        }
    }
    at + random.between(5_000, 20_000)
}

fn edit(random: &mut Random, set: &Set) -> Action {
    let node = random.between(1, u64::from(NODES)) as u8;
    let of_set = |edit: &SetEdit| Action::edit(CLONESET, edit);
    match random.between(0, 99) {
        0..28 => Action::edit(NAME, &Edit::Run(order(random, set))),
        28..34 => Action::edit(NAME, &Edit::Beside(order(random, set))),
        34..44 => Action::edit(NAME, &Edit::Again(order(random, set))),
        44..50 => Action::edit(NAME, &Edit::Interrupt),
        50..58 => of_set(&SetEdit::Scale(random.between(5, MOST) as u32)),
        58..66 => of_set(&SetEdit::MaxUnavailable(
            random.text(&["1", "2", "3", "0", "30%"]),
        )),
        66..69 => of_set(&SetEdit::Image(random.between(1, 4) as u32)),
        69..73 => removal(random, MOST),
        73..76 => Action::edit(REQUEST, &RequestEdit::Delete(random.between(0, 20) as u8)),
        other => Action::edit(
            REQUEST,
            &RequestEdit::Agent(node, node_agents::drawn(other - 76, random)),
        ),
    }
}
