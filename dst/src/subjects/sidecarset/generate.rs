//! Scenarios with SidecarSets: those of a CloneSet, or of a Deployment in its place, with sidecars for its pods.

use super::SUBJECT;
use super::edit::Edit;
use super::start::{LABEL, NAME, SIDECARSETS, Set, Start};
use crate::rules::prelude::*;
use crate::subjects::cloneset;
use crate::subjects::cloneset::draft::Draft;
use crate::subjects::cloneset::generate::{WATCHED, draft};
use crate::subjects::deployment;

/// SidecarSets.
const SIDECARS: Purpose = Purpose(7);
/// Sidecars that are removed from their SidecarSet.
const REMOVED: Purpose = Purpose(31);

/// Whose pods get sidecars.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Workload {
    CloneSet,
    Deployment,
}

/// The scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed, SIDECARS);
    let random = &mut random;
    let mut draft = draft(seed);
    let below = random.either(60, Workload::CloneSet, Workload::Deployment);
    let count = if random.percent(50) { 2 } else { 1 };
    let sets: Vec<Set> = (0..count).map(|_| set(random, below)).collect();
    if below == Workload::Deployment {
        thin_out(&mut draft);
        draft.start.hook = false;
        draft.start.grace = 0;
        draft.start.claims = None;
    }
    add_edits(&mut draft, random, below, &sets);
    if draft.scenario.brief {
        let mut image = last_image(&draft.scenario);
        let start = &draft.start;
        let draw = |random: &mut Random| {
            if below == Workload::Deployment || random.percent(50) {
                Action::edit(NAME, &edit(random, &sets, &mut image))
            } else {
                let edit = cloneset::generate::edit(random, start, &mut image);
                Action::edit(cloneset::draft::NAME, &edit)
            }
        };
        add_steps(&mut draft.scenario, WATCHED, draw, resumes);
    }
    finish(draft, below, sets)
}

/// Edits of the SidecarSets, and faults that matter to them.
fn add_edits(draft: &mut Draft, random: &mut Random, below: Workload, sets: &[Set]) {
    let end = draft.scenario.end(60_000);
    let mut add = |at, what| draft.scenario.steps.push(Step { at, what });
    let mut number = 1;
    // Above a Deployment, only these make managers write.
    let edits = match below {
        Workload::CloneSet => random.between(14, 20),
        Workload::Deployment => random.between(24, 32),
    };
    for _ in 0..edits {
        let at = random.between(2_000, end);
        add(at, Action::edit(NAME, &edit(random, sets, &mut number)));
    }
    let mut removed = Random::new(draft.scenario.seed, REMOVED);
    for (place, set) in (0..).zip(sets) {
        if set.cold && set.hot && removed.percent(60) {
            let at = removed.between(end / 3, end);
            add(at, Action::edit(NAME, &Edit::Drop(place)));
        }
        if !set.at_first {
            let at = random.between(2_000, end / 2);
            add(at, Action::edit(NAME, &Edit::Create(place)));
        }
        add(end + 1, Action::edit(NAME, &Edit::Paused(place, false)));
    }
    for _ in 0..random.between(2, 5) {
        let at = random.between(0, end);
        add(at, fault(random));
    }
    // A SidecarSet may select the label that this gives a pod.
    for _ in 0..2 {
        let at = random.between(0, end / 2);
        let pod = random.small(0, 9);
        add(at, Action::Pod(PodAction::Annotate(pod)));
    }
    draft.scenario.steps.sort_by_key(|step| step.at);
}

/// The newest image that a step names; later ones are new.
fn last_image(scenario: &Scenario) -> u32 {
    let edits = scenario.steps.iter().filter_map(|step| step.what.edit_of(NAME));
    let images = edits.filter_map(|edit| match edit {
        Edit::Image(_, image) | Edit::HotImage(_, image) => Some(image),
        _ => None,
    });
    images
        .max()
        .unwrap_or(1)
        .max(cloneset::generate::last_image(scenario))
}

/// Does an action end a pause?
fn resumes(action: &Action) -> bool {
    SUBJECT.releases(action) || cloneset::generate::resumes(action)
}

/// Keeps one edit of the workload in three: where no other controller than its own creates pods, the others show
/// little.
fn thin_out(draft: &mut Draft) {
    let mut number = 0;
    let steps = std::mem::take(&mut draft.scenario.steps);
    let keep = |step: &Step| {
        let is_edit = Draft::read(step).is_some_and(|edit| !edit.is_release());
        number += usize::from(is_edit);
        !is_edit || number % 3 == 1
    };
    draft.scenario.steps = steps.into_iter().filter(keep).collect();
}

/// Puts the workload and the SidecarSets into the scenario.
fn finish(mut draft: Draft, below: Workload, sets: Vec<Set>) -> Scenario {
    let mut scenario = if below == Workload::CloneSet {
        draft.start.labels.insert(LABEL.into(), "on".into());
        draft.finish()
    } else {
        deployment::instead(draft, LABEL, false)
    };
    scenario.add(NAME, &Start { sets });
    scenario
}

fn set(random: &mut Random, below: Workload) -> Set {
    let (cold, hot) = match random.between(0, 9) {
        0..5 => (true, false),
        5..8 => (false, true),
        _ => (true, true),
    };
    Set {
        at_first: random.percent(80),
        cold,
        hot,
        partition: random.text(&["0", "0", "0", "2", "40%"]),
        max_unavailable: match below {
            Workload::CloneSet => random.text(&["1", "1", "2", "20%", "40%"]),
            Workload::Deployment => random.text(&["1", "2", "3", "40%", "60%"]),
        },
        namespaces: random.percent(25),
        limit: random.between(1, 4) as u32,
    }
}

/// An edit. A new image has the next number.
fn edit(random: &mut Random, sets: &[Set], number: &mut u32) -> Edit {
    let place = random.small(0, sets.len() as u64 - 1);
    let hot = sets.get(usize::from(place)).is_some_and(|set| set.hot);
    let cold = sets.get(usize::from(place)).is_some_and(|set| set.cold);
    let mut image = |random: &mut Random, new: bool| {
        let number = if new {
            *number += 1;
            *number
        } else {
            random.between(1, u64::from(*number)) as u32
        };
        if hot && !(cold && random.percent(50)) {
            Edit::HotImage(place, number)
        } else {
            Edit::Image(place, number)
        }
    };
    match random.between(0, 99) {
        0..44 => image(random, true),
        44..46 => image(random, false),
        46..50 => Edit::Env(place, random.between(1, 3) as u32),
        50..60 => Edit::Partition(place, random.text(&["0", "0", "1", "3", "50%"])),
        60..68 => Edit::MaxUnavailable(place, random.text(&["1", "2", "3", "4", "50%"])),
        68..74 => Edit::Paused(place, random.percent(60)),
        74..79 => Edit::Selector(place, random.percent(60)),
        79..82 => Edit::Updates(place, random.percent(50)),
        82..86 => Edit::InjectionPaused(place, random.percent(50)),
        86..91 => Edit::Pinned(place, random.percent(70)),
        91..94 => Edit::Namespace(random.percent(60)),
        94..97 => Edit::Delete(place),
        _ => Edit::Create(place),
    }
}

fn fault(random: &mut Random) -> Action {
    let lasts = random.between(500, 20_000);
    let watched = random.either(80, SIDECARSETS.plural, NAMESPACES.plural);
    match random.between(0, 9) {
        0..4 => {
            let fault = LastingFault::Stale(watched.to_owned(), random.between(100, 8_000));
            Action::During(lasts, fault)
        }
        4..6 => Action::Once(SuddenFault::CutWatches(watched.to_owned())),
        6..8 => Action::During(lasts, LastingFault::WebhookDown),
        _ => Action::During(lasts, LastingFault::WebhookSlow(random.between(100, 12_000))),
    }
}
