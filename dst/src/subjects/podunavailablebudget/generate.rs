//! Scenarios with a budget: those of a CloneSet, a StatefulSet, or a Deployment, and more that makes pods unavailable.

use super::SUBJECT;
use super::edit::{Edit, Propagation};
use super::start::{BUDGETS, GUESTS, Limit, NAME, Start, Workload};
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;
use crate::subjects::cloneset::generate::draft;
use crate::subjects::deployment;
use crate::subjects::statefulset;
use crate::subjects::statefulset::start::STATEFULSETS;

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, BUDGETS, BUDGETS, CLONESETS, STATEFULSETS];

/// The budget, its edits, and what users do to pods.
const SCENARIO: Purpose = Purpose(300);
/// The StatefulSet below it.
const BELOW: Purpose = Purpose(301);
/// Deletions of pods that have a name from before.
const SUCCESSORS: Purpose = Purpose(302);
/// Deployments that come and go beside a Deployment.
const VISITS: Purpose = Purpose(303);
/// Of the scenarios with a Deployment, this share has guests.
const WITH_GUESTS: u8 = 60;
/// Most replicas of the workloads.
const PODS_OF_A_WORKLOAD: u64 = 9;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let workload = match random.between(0, 99) {
        0..45 => Workload::CloneSet,
        45..75 => Workload::StatefulSet,
        _ => Workload::Deployment,
    };
    let mut visits = Random::new(seed, VISITS);
    let start = Start {
        guests: workload == Workload::Deployment && visits.percent(WITH_GUESTS),
        ..start(random, workload)
    };
    let mut scenario = below(seed, workload);
    if start.guests {
        add_visits(&mut scenario, &mut visits);
    }
    add(&mut scenario, random, &start);
    scenario
}

fn add(scenario: &mut Scenario, random: &mut Random, start: &Start) {
    scenario.managers = 2;
    if start.workload == Workload::StatefulSet {
        let mut random = Random::new(scenario.seed, SUCCESSORS);
        add_successors(scenario, &mut random);
    }
    add_edits(scenario, random, start);
    if scenario.brief {
        let draw = |random: &mut Random| Action::edit(NAME, &edit(random, start));
        add_steps(scenario, WATCHED, draw, |what| SUBJECT.releases(what));
    }
    scenario.add(NAME, &start);
}

/// The scenario of the workload.
fn below(seed: u64, workload: Workload) -> Scenario {
    match workload {
        Workload::StatefulSet => statefulset::generate::draw(seed, &mut Random::new(seed, BELOW)),
        Workload::CloneSet => draft(seed).finish(),
        Workload::Deployment => deployment::instead(draft(seed), NAME, true),
    }
}

fn start(random: &mut Random, workload: Workload) -> Start {
    Start {
        workload,
        // What others make beside a StatefulSet may have its labels.
        target: workload == Workload::StatefulSet || random.percent(60),
        limit: limit(random),
        operations: operations(random),
        updates: random.percent(70),
        at_first: random.percent(75),
        guests: false,
    }
}

fn limit(random: &mut Random) -> Limit {
    if random.percent(65) {
        Limit::Out(random.text(&["1", "1", "2", "20%", "40%", "0"]))
    } else {
        Limit::In(random.text(&["3", "4", "60%", "80%", "9"]))
    }
}

fn operations(random: &mut Random) -> Vec<String> {
    let of: &[&str] = match random.between(0, 9) {
        0..6 => &[],
        6..8 => &["DELETE", "UPDATE", "EVICT", "RESIZE"],
        8 => &["DELETE", "EVICT"],
        _ => &["EVICT"],
    };
    of.iter().map(|one| (*one).to_owned()).collect()
}

/// Adds what users do, and faults that matter to budgets.
fn add_edits(scenario: &mut Scenario, random: &mut Random, start: &Start) {
    let end = scenario.end(90_000);
    let mut add = |at, what| scenario.push(at, what);
    if !start.at_first {
        add(random.between(2_000, end / 3), Action::edit(NAME, &Edit::Create));
    }
    for _ in 0..random.between(18, 26) {
        let at = random.between(4_000, end);
        add(at, Action::edit(NAME, &edit(random, start)));
    }
    // Many at once: a budget is for those.
    for _ in 0..random.between(2, 4) {
        let at = random.between(10_000, end);
        for _ in 0..random.between(3, 6) {
            let what = removal(random, PODS_OF_A_WORKLOAD);
            add(at + random.between(0, 400), what);
        }
    }
    for _ in 0..random.between(4, 8) {
        let at = random.between(0, end);
        add(at, fault(random, WATCHED));
    }
    add(end + 1, Action::edit(NAME, &Edit::Unlabel));
    add(end + 1, Action::edit(NAME, &Edit::Open));
    scenario.steps.sort_by_key(|step| step.at);
}

/// Deletes pods, and those that have their names after them.
fn add_successors(scenario: &mut Scenario, random: &mut Random) {
    for _ in 0..random.between(2, 4) {
        let pod = random.small(0, PODS_OF_A_WORKLOAD);
        let at = random.between(10_000, 80_000);
        scenario.push(at, Action::edit(NAME, &Edit::Twice(pod)));
    }
}

/// Guests come and go: each is created, scaled to zero and back, deleted in one of three ways, and created again soon.
fn add_visits(scenario: &mut Scenario, random: &mut Random) {
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    for place in 0..GUESTS.len() as u8 {
        let mut at = random.between(1_000, 5_000);
        add(at, &Edit::Invite(place, random.between(1, 4) as u32, 1));
        // With another image the ReplicaSet has another name, which the one before may still have.
        for image in 2..random.between(5, 7) as u32 {
            at += random.between(8_000, 25_000);
            let soon = at + random.between(100, 12_000);
            if random.percent(40) {
                add(at, &Edit::ScaleGuest(place, 0));
                if random.percent(70) {
                    add(soon, &Edit::ScaleGuest(place, random.between(1, 4) as u32));
                }
                continue;
            }
            let propagation = match random.between(0, 2) {
                0 => Propagation::Background,
                1 => Propagation::Foreground,
                _ => Propagation::Orphan,
            };
            add(at, &Edit::Dismiss(place, propagation));
            if random.percent(70) {
                add(soon, &Edit::Invite(place, random.between(1, 4) as u32, image));
            }
        }
    }
}

fn edit(random: &mut Random, start: &Start) -> Edit {
    let pod = random.small(0, PODS_OF_A_WORKLOAD);
    let bare = start.workload == Workload::Deployment;
    match random.between(0, 99) {
        24..36 => Edit::Limit(limit(random)),
        36..42 => Edit::Operations(operations(random)),
        42..50 => Edit::Try(pod),
        50..54 => Edit::Exempt(pod),
        54..64 => Edit::Label(pod, random.percent(70)),
        64..68 => Edit::Rename,
        68..71 => Edit::Delete,
        71..78 => Edit::Create,
        // Nothing puts the pods of other workloads right again.
        78..90 if bare => Edit::Image(pod, random.between(1, 4) as u32),
        90..100 if bare => Edit::Resize(pod, random.between(2, 30) as u32),
        _ => Edit::Drain(random.small(0, 2)),
    }
}
