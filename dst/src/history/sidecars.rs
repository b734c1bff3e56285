//! SidecarSets of a history: what is injected into the pods of a workload, and what users do to the sets.

use serde::{Deserialize, Serialize};

use super::{Act, History, PodAct, Start, Strike, Trouble, Watched, What};
use crate::random::{Purpose, Random};

/// SidecarSets beside the workload.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sidecars {
    /// Whose pods they are.
    pub above: Above,
    /// The sets, as they are when they are created.
    pub sets: Vec<Set>,
}

/// Who owns the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Above {
    /// Our CloneSet.
    CloneSet,
    /// A Deployment, of which we know nothing.
    Deployment,
}

/// A set as it is created.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Is it there before the workload? Otherwise an act creates it.
    pub at_first: bool,
    /// A container that restarts for another image.
    pub cold: bool,
    /// A container with a twin that takes over.
    pub hot: bool,
    /// `updateStrategy.partition`, as text.
    pub partition: String,
    /// `updateStrategy.maxUnavailable`, as text.
    pub max_unavailable: String,
    /// Looks at labels of namespaces.
    pub namespaces: bool,
    /// `revisionHistoryLimit`.
    pub limit: u32,
}

/// What a user does to the set at a place.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Creates it; means nothing if it is there.
    Create(u8),
    /// Deletes it.
    Delete(u8),
    /// Another image of its cold container.
    Image(u8, u32),
    /// Another image of its hot container.
    HotImage(u8, u32),
    /// Its hot container goes, if it has a cold one besides.
    Drop(u8),
    /// Another value of a variable, which no pod takes in place.
    Env(u8, u32),
    /// `partition`.
    Partition(u8, String),
    /// `maxUnavailable`.
    MaxUnavailable(u8, String),
    /// `updateStrategy.paused`.
    Paused(u8, bool),
    /// Only pods that a user annotated are upgraded, or all.
    Selector(u8, bool),
    /// `updateStrategy.type`: whether pods are upgraded at all.
    Updates(u8, bool),
    /// `injectionStrategy.paused`.
    InjectionPaused(u8, bool),
    /// New pods get the revision that is the latest now, or today's specification again.
    Pinned(u8, bool),
    /// Whether the namespace has the label that sets may look at.
    Namespace(bool),
}

impl Edit {
    /// Whether it ends what would keep a set from its end.
    pub fn is_release(&self) -> bool {
        matches!(self, Self::Paused(_, false))
    }
}

/// Puts SidecarSets into a third of the histories. Drawn by itself: what it leaves alone is as it was without it.
pub(super) fn add(history: &mut History) {
    let mut random = Random::new(history.seed, Purpose::Sidecars);
    let random = &mut random;
    if !random.percent(33) {
        return;
    }
    let above = if random.percent(60) {
        Above::CloneSet
    } else {
        Above::Deployment
    };
    let count = if random.percent(50) { 2 } else { 1 };
    let sets: Vec<Set> = (0..count).map(|_| set(random, above)).collect();
    if above == Above::Deployment {
        rarer(history);
        history.set = Start {
            hook: false,
            grace: 0,
            claims: None,
            ..history.set.clone()
        };
    }
    let end = history.acts.last().map_or(60_000, |act| act.at).max(60_000);
    let mut acts: Vec<Act> = Vec::new();
    let mut act = |at, what| acts.push(Act { at, what });
    let mut number = 1;
    // Above a Deployment, only these have managers write.
    let edits = match above {
        Above::CloneSet => random.between(14, 20),
        Above::Deployment => random.between(24, 32),
    };
    for _ in 0..edits {
        let at = random.between(2_000, end);
        act(at, What::Sidecars(edit(random, &sets, &mut number)));
    }
    let mut dropped = Random::new(history.seed, Purpose::Dropped);
    for (place, set) in sets.iter().enumerate() {
        if set.cold && set.hot && dropped.percent(60) {
            let at = dropped.between(end / 3, end);
            act(at, What::Sidecars(Edit::Drop(place as u8)));
        }
        if !set.at_first {
            let at = random.between(2_000, end / 2);
            act(at, What::Sidecars(Edit::Create(place as u8)));
        }
        act(end + 1, What::Sidecars(Edit::Paused(place as u8, false)));
    }
    for _ in 0..random.between(2, 5) {
        let at = random.between(0, end);
        act(at, fault(random));
    }
    // A set may look at the label that this gives a pod.
    for _ in 0..2 {
        let at = random.between(0, end / 2);
        act(at, What::Pod(PodAct::Annotate(random.between(0, 9) as u8)));
    }
    history.acts.append(&mut acts);
    history.acts.sort_by_key(|act| act.at);
    history.sidecars = Some(Sidecars { above, sets });
}

/// Keeps one edit of the workload in three: where nobody but its own controller makes pods, the others show little.
fn rarer(history: &mut History) {
    let mut number = 0;
    history.acts.retain(|act| {
        let is_edit = matches!(act.what, What::Edit(_)) && !act.is_release();
        number += usize::from(is_edit);
        !is_edit || number % 3 == 1
    });
}

fn set(random: &mut Random, above: Above) -> Set {
    let (cold, hot) = match random.between(0, 9) {
        0..5 => (true, false),
        5..8 => (false, true),
        _ => (true, true),
    };
    Set {
        at_first: random.percent(80),
        cold,
        hot,
        partition: pick(random, &["0", "0", "0", "2", "40%"]),
        max_unavailable: match above {
            Above::CloneSet => pick(random, &["1", "1", "2", "20%", "40%"]),
            Above::Deployment => pick(random, &["1", "2", "3", "40%", "60%"]),
        },
        namespaces: random.percent(25),
        limit: random.between(1, 4) as u32,
    }
}

fn pick(random: &mut Random, of: &[&str]) -> String {
    random.pick(of).copied().unwrap_or_default().to_owned()
}

pub(super) fn edit(random: &mut Random, sets: &[Set], number: &mut u32) -> Edit {
    let place = random.between(0, sets.len() as u64 - 1) as u8;
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
        50..60 => Edit::Partition(place, pick(random, &["0", "0", "1", "3", "50%"])),
        60..68 => Edit::MaxUnavailable(place, pick(random, &["1", "2", "3", "4", "50%"])),
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

fn fault(random: &mut Random) -> What {
    let lasts = random.between(500, 20_000);
    let watched = if random.percent(80) {
        Watched::SidecarSets
    } else {
        Watched::Namespaces
    };
    match random.between(0, 9) {
        0..4 => What::During(lasts, Trouble::Stale(watched, random.between(100, 8_000))),
        4..6 => What::Strike(Strike::CutWatches(watched)),
        6..8 => What::During(lasts, Trouble::WebhookDown),
        _ => What::During(lasts, Trouble::WebhookSlow(random.between(100, 12_000))),
    }
}
