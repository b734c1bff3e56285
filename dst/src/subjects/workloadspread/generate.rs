//! Scenarios with a WorkloadSpread: those of a CloneSet or a Deployment, and more that makes pods come and go.

use super::SUBJECT;
use super::start::{Edit, NAME, SPREADS, Start, Workload};
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::{CLONESETS, NAME as CLONESET};
use crate::subjects::cloneset::edit::Edit as WorkloadEdit;
use crate::subjects::cloneset::generate::draft;
use crate::subjects::cloneset::start::{Policy, Start as Below};
use crate::subjects::deployment;
use crate::subjects::podunavailablebudget::start::REPLICASETS;

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, SPREADS, SPREADS, CLONESETS, REPLICASETS];

/// The WorkloadSpread, its edits, and what users do to pods.
const SCENARIO: Purpose = Purpose(1300);
/// Most replicas of the workloads.
const PODS_OF_A_WORKLOAD: u64 = 9;
/// In this share of the scenarios pods are refused to be put into a subset, more of them than one reconcile reads.
const REFUSED: u8 = 15;
/// Pods then.
const CROWD: u64 = 40;
/// Everything but the release happens before, in milliseconds.
const LEAST: u64 = 90_000;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    if random.percent(REFUSED) {
        return refused(seed, random);
    }
    let start = start(random);
    let mut scenario = below(seed, start.workload);
    scenario.managers = 2;
    add(&mut scenario, random, &start);
    scenario.add(NAME, &start);
    scenario
}

fn start(random: &mut Random) -> Start {
    let workload = random.either(60, Workload::CloneSet, Workload::Deployment);
    let subsets = random.between(2, 3) as usize;
    let percentages = random.percent(25);
    // The last one has to be open for a strategy that moves pods, and behind percentages.
    let open = percentages || random.percent(60);
    let adaptive = if open && random.percent(30) {
        random.between(3, 15) as u32
    } else {
        0
    };
    Start {
        workload,
        limits: limits(random, subsets, percentages, open),
        adaptive,
        at_first: random.percent(75),
        refused: false,
    }
}

/// A CloneSet of many pods gets a WorkloadSpread that may not have them.
fn refused(seed: u64, random: &mut Random) -> Scenario {
    let start = Start {
        workload: Workload::CloneSet,
        limits: limits(random, 3, false, true),
        adaptive: 0,
        at_first: false,
        refused: true,
    };
    let workload = Below::plain(CROWD as u32, Policy::ReCreate);
    let mut scenario = begin(seed, CLONESET, &workload, random);
    let mut add = |at, what| scenario.push(at, what);
    for _ in 0..random.between(1, 3) {
        let edit = Edit::Limits(limits(random, 3, false, true));
        add(random.between(LEAST / 2, LEAST), Action::edit(NAME, &edit));
        add(random.between(0, LEAST), removal(random, CROWD - 1));
    }
    let at = random.between(LEAST / 4, LEAST / 2);
    add(at, Action::edit(NAME, &Edit::Create));
    add_faults(&mut scenario, random, WATCHED, 8, LEAST);
    scenario.steps.sort_by_key(|step| step.at);
    scenario.add(NAME, &start);
    scenario
}

/// A limit for each subset, but for the last one if that is open.
fn limits(random: &mut Random, subsets: usize, percentages: bool, open: bool) -> Vec<String> {
    let limit = |place: usize| {
        if open && place + 1 == subsets {
            String::new()
        } else if percentages {
            random.text(&["20%", "30%", "40%", "50%"])
        } else {
            random.text(&["0", "1", "2", "2", "3", "3", "4", "5"])
        }
    };
    (0..subsets).map(limit).collect()
}

/// The scenario of the workload.
fn below(seed: u64, workload: Workload) -> Scenario {
    match workload {
        Workload::CloneSet => draft(seed).finish(),
        Workload::Deployment => deployment::instead(draft(seed), NAME, false),
    }
}

/// Adds what users do, and faults that matter to counts.
fn add(scenario: &mut Scenario, random: &mut Random, start: &Start) {
    let end = scenario.end(LEAST);
    let mut add = |at, what| scenario.push(at, what);
    if !start.at_first {
        add(random.between(2_000, end / 3), Action::edit(NAME, &Edit::Create));
    }
    for _ in 0..random.between(6, 12) {
        let at = random.between(4_000, end);
        add(at, Action::edit(NAME, &edit(random, start)));
    }
    for _ in 0..random.between(4, 8) {
        add(random.between(4_000, end), scale(random, start.workload));
    }
    // Many at once: they share status writes, of two replicas.
    for _ in 0..random.between(3, 6) {
        let at = random.between(10_000, end);
        for _ in 0..random.between(2, 6) {
            let what = removal(random, PODS_OF_A_WORKLOAD);
            add(at + random.between(0, 400), what);
        }
    }
    for _ in 0..random.between(1, 3) {
        let lasts = random.between(1_000, 15_000);
        let most = random.between(200, 6_000);
        let what = Action::During(lasts, LastingFault::WebhookSlow(most));
        add(random.between(0, end), what);
    }
    for _ in 0..random.between(4, 8) {
        add(random.between(0, end), fault(random, WATCHED));
    }
    add(end + 1, Action::edit(NAME, &Edit::Create));
    add_crashes(scenario, random, end);
    let draw = |random: &mut Random| {
        if random.percent(35) {
            scale(random, start.workload)
        } else {
            Action::edit(NAME, &edit(random, start))
        }
    };
    finish(scenario, WATCHED, draw, |what| SUBJECT.releases(what));
}

/// Another number of replicas, none of them now and then.
fn scale(random: &mut Random, workload: Workload) -> Action {
    let subject = match workload {
        Workload::CloneSet => CLONESET,
        Workload::Deployment => deployment::NAME,
    };
    let replicas = match random.between(0, 9) {
        0 => 0,
        1 => 1,
        _ => random.between(3, 10) as u32,
    };
    Action::edit(subject, &WorkloadEdit::Scale(replicas))
}

fn edit(random: &mut Random, start: &Start) -> Edit {
    let subsets = start.limits.len();
    let is_percentage = |limit: &String| limit.ends_with('%');
    let open = start.limits.last().is_some_and(String::is_empty);
    match random.between(0, 99) {
        0..40 => {
            let percentages = start.limits.iter().any(is_percentage);
            Edit::Limits(limits(random, subsets, percentages, open))
        }
        40..85 => {
            let place = random.small(0, subsets as u64 - 1);
            Edit::Empty(place, random.percent(50))
        }
        85..90 => Edit::Delete,
        _ => Edit::Create,
    }
}
