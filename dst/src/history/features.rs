//! What only some histories have. Each is drawn from a stream of its own and changes nothing else of a history, so that
//! a seed means what it meant before.

use super::{Act, Edit, History, Mark, PodAct, Policy, PreDelete, What};
use crate::random::{Purpose, Random};

/// Adds to a history what its seed says. One with SidecarSets has enough.
pub(super) fn add(history: &mut History) {
    if history.sidecars.is_some() {
        return;
    }
    resources(history);
    hooks(history);
    config(history);
    batches(history);
    strategies(history);
    times(history);
    releases(history);
    history.acts.sort_by_key(|act| act.at);
}

/// When users change the set: acts that come between, or a little after.
fn moments(history: &History) -> Vec<u64> {
    let edits = history.acts.iter();
    let edits = edits.filter(|act| matches!(act.what, What::Edit(_)) && !act.is_release());
    edits.map(|act| act.at).collect()
}

/// Containers that get another share of a processor, now and then more than there is.
fn resources(history: &mut History) {
    let mut random = Random::new(history.seed, Purpose::Resources);
    // In place only, nobody may change resources; after a time without a policy they would stay what nobody can give.
    if matches!(history.set.policy, Policy::ReCreate | Policy::InPlaceOnly) || !random.percent(30) {
        return;
    }
    history.set.resources = true;
    let mut acts = Vec::new();
    for at in moments(history) {
        if random.percent(25) {
            let at = at + random.between(1, 22_000);
            acts.push((at, Edit::Cpu(0)));
        }
    }
    if random.percent(25) {
        let at = random.between(2_000, 60_000);
        acts.push((at, Edit::TooMuch));
        acts.push((at + random.between(2_000, 40_000), Edit::Enough(0)));
    }
    history.set.restarts = Random::new(history.seed, Purpose::Restarts).percent(40);
    acts.sort_by_key(|(at, _)| *at);
    // No amount comes twice.
    let numbered = acts.into_iter().zip(2..).map(|((at, edit), number)| {
        let edit = match edit {
            Edit::Cpu(_) => Edit::Cpu(number),
            Edit::Enough(_) => Edit::Enough(number),
            other => other,
        };
        let what = What::Edit(edit);
        Act { at, what }
    });
    history.acts.extend(numbered);
    if random.percent(40) {
        let at = random.between(2_000, 60_000);
        let what = What::Crowded(random.between(5_000, 40_000));
        history.acts.push(Act { at, what });
    }
}

/// Hooks before pods are deleted, and before they come into service.
fn hooks(history: &mut History) {
    let mut random = Random::new(history.seed, Purpose::Hooks);
    let mark = |random: &mut Random| {
        if random.percent(50) {
            Mark::Label
        } else {
            Mark::Finalizer
        }
    };
    if random.percent(20) {
        history.set.pre_delete = Some(PreDelete {
            mark: mark(&mut random),
            not_ready: random.percent(50),
            excluded: random.percent(30),
        });
    }
    if random.percent(12) {
        history.set.pre_normal = Some(mark(&mut random));
    }
}

/// A container that reads an annotation of its pod, which changes now and then, and back.
fn config(history: &mut History) {
    let mut random = Random::new(history.seed, Purpose::Config);
    if !random.percent(20) {
        return;
    }
    history.set.config = true;
    for at in moments(history) {
        if random.percent(30) {
            let at = at + random.between(1, 22_000);
            let what = What::Edit(Edit::Config(random.between(1, 4) as u32));
            history.acts.push(Act { at, what });
        }
    }
}

/// A second container, whose image changes with that of the first and after it.
fn batches(history: &mut History) {
    let mut random = Random::new(history.seed, Purpose::Batches);
    if history.set.policy == Policy::ReCreate || !random.percent(20) {
        return;
    }
    history.set.batches = true;
    for (number, at) in (1..).zip(moments(history)) {
        if random.percent(40) {
            let at = at + random.between(1, 22_000);
            let what = What::Edit(Edit::Both(number));
            history.acts.push(Act { at, what });
        }
    }
}

/// Which pods are updated when: those that users prefer first, only those that somebody deletes, some of them back.
fn strategies(history: &mut History) {
    let mut random = Random::new(history.seed, Purpose::Strategies);
    let edit = |at, edit| Act {
        at,
        what: What::Edit(edit),
    };
    if random.percent(10) {
        let at = random.between(2_000, 60_000);
        history.acts.push(edit(at, Edit::OnDelete(true)));
        let at = at + random.between(3_000, 40_000);
        history.acts.push(edit(at, Edit::OnDelete(false)));
    }
    if random.percent(12) {
        history.set.goes_back = true;
        let mut at = 0;
        for partition in ["1", "4", "0", "60%"] {
            at += random.between(3_000, 30_000);
            history.acts.push(edit(at, Edit::Partition(partition.to_owned())));
        }
    }
    if random.percent(12) {
        history.set.priority = true;
        marks(history, &mut random);
    }
    let mut random = Random::new(history.seed, Purpose::Order);
    if !history.set.priority && random.percent(12) {
        history.set.order = true;
        marks(history, &mut random);
    }
    let mut random = Random::new(history.seed, Purpose::Scatter);
    if !history.set.priority && !history.set.order && random.percent(10) {
        history.set.scatter = true;
        marks(history, &mut random);
    }
}

/// Pods that ask for too much may be among those that the partition keeps.
fn releases(history: &mut History) {
    let asks = |act: &Act| act.what == What::Edit(Edit::TooMuch);
    if history.acts.iter().any(asks) {
        let at = history.acts.iter().map(|act| act.at).max().unwrap_or(0) + 1;
        let what = What::Edit(Edit::Everywhere);
        history.acts.push(Act { at, what });
    }
}

/// Users mark pods.
fn marks(history: &mut History, random: &mut Random) {
    for _ in 0..4 {
        let at = random.between(1_000, 60_000);
        let what = What::Pod(PodAct::Annotate(random.between(0, 9) as u8));
        history.acts.push(Act { at, what });
    }
}

/// Seconds that change: until a ready pod counts, and until a rollout is late.
fn times(history: &mut History) {
    let mut random = Random::new(history.seed, Purpose::Times);
    if random.percent(12) {
        for _ in 0..2 {
            let at = random.between(2_000, 90_000);
            let what = What::Edit(Edit::MinReady(random.between(0, 6) as u32));
            history.acts.push(Act { at, what });
        }
    }
    if random.percent(15) {
        history.set.deadline = random.between(15, 60) as u32;
        let seconds = if random.percent(30) {
            0
        } else {
            random.between(15, 90) as u32
        };
        let at = random.between(2_000, 90_000);
        let what = What::Edit(Edit::Deadline(seconds));
        history.acts.push(Act { at, what });
    }
}
