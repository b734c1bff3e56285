//! What only some scenarios have. Each is drawn from numbers of its own and changes nothing else of a scenario, so
//! that a seed means what it meant before.

use super::draft::Draft;
use super::edit::Edit;
use super::start::{Policy, PreDelete};
use crate::rules::prelude::*;
use crate::subjects::hooks::Mark;

/// Hooks before deletions and before pods become available.
const HOOKS: Purpose = Purpose(21);
/// Containers that read an annotation.
const CONFIG: Purpose = Purpose(24);
/// Containers that change one after the other.
const BATCHES: Purpose = Purpose(25);
/// Which pods are updated when.
const STRATEGIES: Purpose = Purpose(26);
/// Deadlines and times.
const TIMES: Purpose = Purpose(27);
/// Amounts of containers.
const RESOURCES: Purpose = Purpose(28);
/// Pods that wait for the others.
const ORDER: Purpose = Purpose(29);
/// Containers that restart for another amount.
const RESTARTS: Purpose = Purpose(30);
/// Pods that are spread over a rollout.
const SCATTER: Purpose = Purpose(33);
/// Containers that start slowly.
const STARTUP: Purpose = Purpose(34);
/// Annotations that are removed.
const CONFIG_GONE: Purpose = Purpose(35);
/// Annotations that somebody leaves out.
const STRIPS: Purpose = Purpose(36);

/// Adds to a scenario what its seed decides.
pub fn add(draft: &mut Draft) {
    resources(draft);
    hooks(draft);
    config(draft);
    startup(draft);
    batches(draft);
    strategies(draft);
    times(draft);
    strips(draft);
    releases(draft);
    draft.scenario.steps.sort_by_key(|step| step.at);
}

/// When users edit the CloneSet: further edits come between, or a little later.
fn moments(draft: &Draft) -> Vec<u64> {
    let steps = draft.scenario.steps.iter();
    let is_edit = |step: &&Step| Draft::read(step).is_some_and(|edit| !edit.is_release());
    steps.filter(is_edit).map(|step| step.at).collect()
}

/// Containers that get another share of a processor, now and then more than there is.
fn resources(draft: &mut Draft) {
    let mut random = Random::new(draft.scenario.seed, RESOURCES);
    // In place only, nobody may change resources; after a time without a policy they would stay what nobody can give.
    if matches!(draft.start.policy, Policy::ReCreate | Policy::InPlaceOnly) || !random.percent(30) {
        return;
    }
    draft.start.resources = true;
    let mut edits = Vec::new();
    for at in moments(draft) {
        if random.percent(25) {
            let at = at + random.between(1, 22_000);
            edits.push((at, Edit::Cpu(0)));
        }
    }
    if random.percent(25) {
        let at = random.between(2_000, 60_000);
        edits.push((at, Edit::TooMuch));
        edits.push((at + random.between(2_000, 40_000), Edit::Enough(0)));
    }
    draft.start.restarts = Random::new(draft.scenario.seed, RESTARTS).percent(40);
    edits.sort_by_key(|(at, _)| *at);
    // No amount comes twice.
    for ((at, edit), number) in edits.into_iter().zip(2..) {
        let edit = match edit {
            Edit::Cpu(_) => Edit::Cpu(number),
            Edit::Enough(_) => Edit::Enough(number),
            other => other,
        };
        draft.edit(at, &edit);
    }
    if random.percent(40) {
        let at = random.between(2_000, 60_000);
        let what = Action::NodeCrowded(random.between(5_000, 40_000));
        draft.scenario.push(at, what);
    }
}

/// Hooks before pods are deleted, and before they become available.
fn hooks(draft: &mut Draft) {
    let mut random = Random::new(draft.scenario.seed, HOOKS);
    if random.percent(20) {
        draft.start.pre_delete = Some(PreDelete {
            mark: Mark::any(&mut random),
            not_ready: random.percent(50),
            excluded: random.percent(30),
        });
    }
    if random.percent(12) {
        draft.start.pre_normal = Some(Mark::any(&mut random));
    }
}

/// A container that reads an annotation of its pod, which changes now and then, and back.
fn config(draft: &mut Draft) {
    let mut random = Random::new(draft.scenario.seed, CONFIG);
    if !random.percent(20) {
        return;
    }
    draft.start.config = true;
    let mut gone = Random::new(draft.scenario.seed, CONFIG_GONE);
    for at in moments(draft) {
        if random.percent(30) {
            let at = at + random.between(1, 22_000);
            let changed = Edit::Config(random.between(1, 4) as u32);
            draft.edit(at, &gone.either(25, Edit::ConfigGone, changed));
        }
    }
}

/// A container that takes a while until its startup probe passes.
fn startup(draft: &mut Draft) {
    let mut random = Random::new(draft.scenario.seed, STARTUP);
    draft.start.startup = random.percent(15);
}

/// A second container, whose image changes with that of the first and after it.
fn batches(draft: &mut Draft) {
    let mut random = Random::new(draft.scenario.seed, BATCHES);
    if draft.start.policy == Policy::ReCreate || !random.percent(20) {
        return;
    }
    draft.start.batches = true;
    for (number, at) in (1..).zip(moments(draft)) {
        if random.percent(40) {
            let at = at + random.between(1, 22_000);
            draft.edit(at, &Edit::Both(number));
        }
    }
}

/// Which pods are updated when: those that users prefer first, only those that somebody deletes, some of them back.
fn strategies(draft: &mut Draft) {
    let mut random = Random::new(draft.scenario.seed, STRATEGIES);
    if random.percent(10) {
        let at = random.between(2_000, 60_000);
        draft.edit(at, &Edit::OnDelete(true));
        let at = at + random.between(3_000, 40_000);
        draft.edit(at, &Edit::OnDelete(false));
    }
    if random.percent(12) {
        draft.start.rolls_back = true;
        let mut at = 0;
        for partition in ["1", "4", "0", "60%"] {
            at += random.between(3_000, 30_000);
            draft.edit(at, &Edit::Partition(partition.to_owned()));
        }
    }
    if random.percent(12) {
        draft.start.priority = true;
        marks(draft, &mut random);
    }
    let mut random = Random::new(draft.scenario.seed, ORDER);
    if !draft.start.priority && random.percent(12) {
        draft.start.order = true;
        marks(draft, &mut random);
    }
    let mut random = Random::new(draft.scenario.seed, SCATTER);
    if !draft.start.priority && !draft.start.order && random.percent(10) {
        draft.start.scatter = true;
        marks(draft, &mut random);
    }
}

/// Pods that request too much may be among those that the partition keeps.
fn releases(draft: &mut Draft) {
    let steps = &draft.scenario.steps;
    if steps.iter().any(|step| Draft::read(step) == Some(Edit::TooMuch)) {
        let last = steps.iter().map(|step| step.at).max().unwrap_or(0);
        draft.edit(last + 1, &Edit::Everywhere);
    }
}

/// Users mark pods.
fn marks(draft: &mut Draft, random: &mut Random) {
    for _ in 0..4 {
        let at = random.between(1_000, 60_000);
        let what = Action::Pod(PodAction::Annotate(random.small(0, 9)));
        draft.scenario.push(at, what);
    }
}

/// Somebody writes whole pods, without the annotations of their updates.
fn strips(draft: &mut Draft) {
    let mut random = Random::new(draft.scenario.seed, STRIPS);
    if draft.start.grace > 0 && random.percent(40) {
        let at = random.between(2_000, 40_000);
        let what = Action::Pod(PodAction::Strip(random.between(5_000, 40_000)));
        draft.scenario.push(at, what);
    }
}

/// Seconds that change: until a ready pod counts, and until a rollout is late.
fn times(draft: &mut Draft) {
    let mut random = Random::new(draft.scenario.seed, TIMES);
    if random.percent(12) {
        for _ in 0..2 {
            let at = random.between(2_000, 90_000);
            draft.edit(at, &Edit::MinReady(random.between(0, 6) as u32));
        }
    }
    if random.percent(15) {
        draft.start.deadline = random.between(15, 60) as u32;
        let none = random.percent(30);
        let seconds = if none { 0 } else { random.between(15, 90) as u32 };
        let at = random.between(2_000, 90_000);
        draft.edit(at, &Edit::Deadline(seconds));
    }
}
