//! Scenarios with a StatefulSet.

use super::edit::{Deletion, Edit};
use super::start::{CLASSES, Claims, Growth, NAME, STATEFULSETS, Start};
use crate::rules::prelude::*;
use crate::subjects::cloneset::start::Policy;
use crate::subjects::hooks::Mark;

/// Resources whose watches faults hit.
const WATCHED: &[Resource] = &[PODS, PODS, STATEFULSETS, REVISIONS, CLAIMS];
/// And those of claims that grow.
const WATCHED_GROWING: &[Resource] = &[PODS, PODS, STATEFULSETS, REVISIONS, CLAIMS, CLAIMS, CLASSES];

/// The StatefulSet, its edits and the faults.
const SCENARIO: Purpose = Purpose(200);

/// Whether a class stops to expand before claims are to grow, or while they do.
const EXPANSION: Purpose = Purpose(202);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 1_000;
/// Most replicas.
const REPLICAS: u64 = 9;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    draw(seed, &mut Random::new(seed, SCENARIO))
}

/// A scenario with a StatefulSet.
pub fn draw(seed: u64, random: &mut Random) -> Scenario {
    let start = start(random);
    let watched = if start.resizes() { WATCHED_GROWING } else { WATCHED };
    let mut scenario = begin(seed, NAME, &start, random);
    let mut image = 1;
    let end = edits(&mut scenario, random, &start, &mut image);
    let count = faults(&scenario, random);
    add_faults(&mut scenario, random, watched, count, end);
    finish(
        &mut scenario,
        watched,
        |random| Action::edit(NAME, &edit(random, &start, &mut image)),
        |what| *what == Action::edit(NAME, &Edit::Paused(false)),
    );
    scenario
}

/// Adds what users do; when the last of it happens.
fn edits(scenario: &mut Scenario, random: &mut Random, start: &Start, image: &mut u32) -> u64 {
    let mut at = FIRST;
    let stops_before = Random::new(scenario.seed, EXPANSION).percent(50);
    let mut add = |at, edit: &Edit| scenario.edit(at, NAME, edit);
    let count = random.between(8, 12);
    for number in 0..count {
        at += pause(random, 30);
        if number == 0 || number + 1 == count {
            *image += 1;
            add(at, &Edit::Image(*image));
        } else {
            add(at, &edit(random, start, image));
        }
    }
    if random.percent(12) {
        let from = random.between(20_000, at);
        let deletion = random.one([Deletion::Background, Deletion::Foreground, Deletion::Orphan]);
        add(from, &Edit::Delete(deletion));
        add(from + random.between(500, 20_000), &Edit::Create);
    }
    if random.percent(10) {
        let from = random.between(2_000, at);
        add(from, &Edit::OnDelete(true));
        add(from + random.between(3_000, 40_000), &Edit::OnDelete(false));
    }
    if start.resizes() && random.percent(40) {
        let from = random.between(5_000, at);
        let mut both = [
            Edit::ClaimSize(random.between(7, 9) as u32),
            Edit::Expansion(false),
        ];
        if stops_before {
            both.reverse();
        }
        let [first, second] = &both;
        add(from, first);
        let from = from + random.between(10, 6_000);
        add(from, second);
        add(from + random.between(1_000, 30_000), &Edit::Expansion(true));
    }
    // A rollout that is paused at the end would show little.
    add(at + 1, &Edit::Paused(false));
    if start.priority {
        for _ in 0..4 {
            let at = random.between(FIRST, at);
            scenario.push(at, Action::Pod(PodAction::Annotate(random.small(0, 9))));
        }
    }
    at + random.between(5_000, 30_000)
}

fn start(random: &mut Random) -> Start {
    let parallel = random.percent(55);
    let policy = random.one([
        Policy::InPlaceIfPossible,
        Policy::InPlaceIfPossible,
        Policy::ReCreate,
        Policy::InPlaceOnly,
    ]);
    let in_place = policy != Policy::ReCreate;
    Start {
        replicas: random.between(5, REPLICAS) as u32,
        parallel,
        policy,
        max_unavailable: max_unavailable(random, parallel),
        partition: random.maybe(40, |random| random.between(1, 4) as u32),
        min_ready_seconds: random.maybe(20, |random| random.between(1, 4) as u32),
        scale_max_unavailable: scale_max_unavailable(random, parallel, 25),
        first: random.percent(25).then(|| random.between(0, 3) as u32),
        reserved: random.maybe(40, reserved),
        hook: in_place && random.percent(25),
        pre_delete: random
            .percent(20)
            .then(|| (Mark::any(random), random.percent(50))),
        pre_normal: random.percent(12).then(|| Mark::any(random)),
        grace: if in_place {
            random.maybe(25, |random| random.between(1, 6) as u32)
        } else {
            0
        },
        priority: parallel && random.percent(20),
        claims: random.percent(60).then(|| Claims {
            when_scaled: random.percent(50),
            when_deleted: random.percent(50),
            resized: random.maybe(45, |random| {
                random
                    .pick(&[Growth::Online, Growth::Online, Growth::Offline])
                    .copied()
            }),
        }),
    }
}

/// Ordered sets allow one only.
fn max_unavailable(random: &mut Random, parallel: bool) -> String {
    if parallel {
        random.text(&["1", "2", "3", "20%", "40%"])
    } else {
        "1".into()
    }
}

fn scale_max_unavailable(random: &mut Random, parallel: bool, percent: u8) -> String {
    if !random.percent(percent) {
        String::new()
    } else if parallel {
        random.text(&["1", "2", "3", "30%"])
    } else {
        "1".into()
    }
}

/// Ordinals that users reserve, now and then more than anybody could list.
fn reserved(random: &mut Random) -> Vec<String> {
    let mut entries = Vec::new();
    for _ in 0..random.between(0, 3) {
        let from = random.between(0, REPLICAS + 2);
        entries.push(match random.between(0, 9) {
            0..6 => from.to_string(),
            6..9 => format!("{from}-{}", from + random.between(0, 3)),
            _ => format!("{from}-1999999999"),
        });
    }
    entries
}

/// An edit. A new image has the next number.
fn edit(random: &mut Random, start: &Start, image: &mut u32) -> Edit {
    let in_place_only = start.policy == Policy::InPlaceOnly;
    if start.claims.is_some() && random.percent(10) {
        return Edit::Retention(random.percent(50), random.percent(50));
    }
    if start.claims.is_some() && random.percent(if start.resizes() { 15 } else { 5 }) {
        return Edit::ClaimSize(random.between(1, 6) as u32);
    }
    match random.between(0, 99) {
        0..28 => {
            *image += 1;
            Edit::Image(*image)
        }
        28..36 => Edit::Image(random.between(1, u64::from(*image)) as u32),
        36..42 if !in_place_only => Edit::Env(random.between(1, 9) as u32),
        36..45 => Edit::Annotation(random.between(1, 9) as u32),
        45..57 => Edit::Scale(random.between(5, REPLICAS) as u32),
        57..65 => Edit::Partition(random.one([0, 0, 1, 2, 4])),
        65..68 => Edit::MaxUnavailable(max_unavailable(random, start.parallel)),
        68..71 => Edit::ScaleMaxUnavailable(scale_max_unavailable(random, start.parallel, 60)),
        71..74 => Edit::Paused(random.percent(50)),
        74..84 => Edit::Reserve(reserved(random)),
        84..87 if start.first.is_some() => Edit::First(random.between(0, 4) as u32),
        84..87 => Edit::MinReady(random.between(0, 4) as u32),
        87..93 => Edit::MarkPod(random.small(0, 9)),
        93..95 if !in_place_only => Edit::Orphan(random.between(0, REPLICAS + 3) as u32),
        93..97 => Edit::Foreign(random.between(0, REPLICAS + 3) as u32),
        _ if !in_place_only => Edit::Policy(random.either(60, Policy::InPlaceIfPossible, Policy::ReCreate)),
        _ => Edit::Scale(random.between(5, REPLICAS) as u32),
    }
}
