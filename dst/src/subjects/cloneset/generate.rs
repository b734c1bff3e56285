//! A scenario for every seed.

use super::draft::{CLONESETS, Draft, NAME};
use super::edit::Edit;
use super::features;
use super::start::{Claims, Policy, Start};
use crate::rules::prelude::*;

/// Resources whose watches faults hit.
pub const WATCHED: &[Resource] = &[PODS, PODS, CLONESETS, REVISIONS, CLAIMS];

/// The CloneSet, its edits and the faults.
const SCENARIO: Purpose = Purpose(1);
/// Grace periods.
const GRACE: Purpose = Purpose(6);

/// What users do begins after this many milliseconds.
const FIRST: u64 = 1_000;

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut draft = draft(seed);
    features::add(&mut draft);
    if draft.scenario.brief {
        let mut image = last_image(&draft.scenario);
        let start = &draft.start;
        add_steps(
            &mut draft.scenario,
            WATCHED,
            |random| Action::edit(NAME, &edit(random, start, &mut image)),
            resumes,
        );
        condense(&mut draft.scenario.steps);
    }
    draft.finish()
}

/// The newest image that a step names; later ones are new.
pub fn last_image(scenario: &Scenario) -> u32 {
    let edits = scenario.steps.iter().filter_map(|step| step.what.edit_of(NAME));
    let images = edits.filter_map(|edit| match edit {
        Edit::Image(image) => Some(image),
        _ => None,
    });
    images.max().unwrap_or(1)
}

/// Does an action end a pause?
pub fn resumes(action: &Action) -> bool {
    action.edit_of(NAME) == Some(Edit::Paused(false))
}

/// What all scenarios have: a CloneSet, edits and faults.
pub fn draft(seed: u64) -> Draft {
    let mut random = Random::new(seed, SCENARIO);
    let random = &mut random;
    let start = start(seed, random);
    // One in twenty is played to its end; the others end once they count.
    let brief = !random.percent(5);
    let mut scenario = Scenario {
        brief,
        ..Scenario::clean([], [])
    };
    scenario.seed = seed;
    let edits = if brief {
        random.between(11, 14)
    } else {
        random.between(6, 8)
    };
    let (mut at, mut image) = (FIRST, 1);
    for number in 0..edits {
        at += pause(random, 30);
        let edit = if number == 0 || number + 1 == edits {
            image += 1;
            Edit::Image(image)
        } else {
            edit(random, &start, &mut image)
        };
        scenario.edit(at, NAME, &edit);
    }
    // A rollout that is paused at the end would show little.
    scenario.edit(at + 1, NAME, &Edit::Paused(false));
    let end = at + random.between(5_000, 30_000);
    let count = faults(&scenario, random);
    add_faults(&mut scenario, random, WATCHED, count, end);
    scenario.steps.sort_by_key(|step| step.at);
    scenario.managers = if random.percent(35) { 2 } else { 1 };
    Draft { scenario, start }
}

fn start(seed: u64, random: &mut Random) -> Start {
    let replicas = random.between(5, 10) as u32;
    let surge = if random.percent(25) { "1" } else { "0" };
    let policy = policy(random, surge);
    let start = Start {
        max_unavailable: random.text(&["1", "2", "20%", "40%"]),
        max_surge: surge.to_owned(),
        partition: random.text(&["0", "0", "0", "2", "40%"]),
        min_ready_seconds: random.maybe(20, |_| 3),
        scale_max_unavailable: random.maybe(15, |_| "3".into()),
        grace: grace(seed, policy),
        claims: match random.between(0, 9) {
            0..3 => Some(Claims::Reused),
            3..6 => Some(Claims::Gone),
            _ => None,
        },
        ..Start::plain(replicas, policy)
    };
    let hook = policy != Policy::ReCreate && random.percent(25);
    Start { hook, ..start }
}

/// Drawn by itself, so that it changes nothing else of the scenario.
fn grace(seed: u64, policy: Policy) -> u32 {
    let mut random = Random::new(seed, GRACE);
    if policy == Policy::ReCreate || !random.percent(25) {
        return 0;
    }
    random.between(1, 6) as u32
}

/// In-place policies allow no surge when they allow nothing else.
fn policy(random: &mut Random, surge: &str) -> Policy {
    let if_possible = Policy::InPlaceIfPossible;
    match surge {
        "0" => random.one([if_possible, if_possible, Policy::ReCreate, Policy::InPlaceOnly]),
        _ => random.one([if_possible, Policy::ReCreate]),
    }
}

/// An edit. A new image has the next number.
pub fn edit(random: &mut Random, start: &Start, image: &mut u32) -> Edit {
    if start.claims.is_some() && random.percent(15) {
        return if random.percent(60) {
            Edit::ClaimSize(random.between(2, 9) as u32)
        } else {
            Edit::Reuse(random.percent(50))
        };
    }
    match random.between(0, 99) {
        0..34 => {
            *image += 1;
            Edit::Image(*image)
        }
        34..44 => Edit::Image(random.between(1, u64::from(*image)) as u32),
        44..50 if start.policy != Policy::InPlaceOnly => Edit::Env(random.between(1, 9) as u32),
        44..56 => Edit::Annotation(random.between(1, 9) as u32),
        56..67 => Edit::Scale(random.between(5, 10) as u32),
        67..75 => Edit::Partition(random.text(&["0", "1", "3", "50%"])),
        75..80 => Edit::MaxUnavailable(random.text(&["1", "2", "3", "30%"])),
        80..83 => Edit::Paused(random.percent(50)),
        83..88 => Edit::PodsToDelete(vec![random.small(0, 9)], random.percent(40)),
        88..94 => Edit::MarkPod(random.small(0, 9)),
        94..97 if start.policy != Policy::InPlaceOnly => Edit::MaxSurge(random.text(&["0", "1", "2"])),
        _ if start.policy != Policy::InPlaceOnly => Edit::Policy(policy(random, "1")),
        _ => Edit::Scale(random.between(5, 10) as u32),
    }
}
