//! What was tried for pods without their sidecars: whose pods are on their way back, and when it is of use to try
//! again.
//!
//! Kept in memory by whoever plans, one for each set. After a restart nothing is known, and each owner is tried
//! once more; a pod is left alone for a while after it was made, so that not even a manager that restarts all the
//! time recreates pods without end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use kruise_api::names::SPECIFIED_DELETE;
use kruise_plan_kit::{Intent, Plan, ResourceId};
use kruise_views::PodView;

/// How long a removed pod counts as out of service. Its owner may not want it back.
const MISSED: Duration = Duration::from_mins(10);
/// How long a pod without sidecars is left alone if none of its owner's came back with them: an API server may go by an
/// older configuration of webhooks still. And how long a new memory takes nothing for granted.
pub(crate) const SETTLE: Duration = Duration::from_secs(30);
/// The first wait after a try that was in vain; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_mins(1);
/// The longest.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// What one set has tried, by the uid of the pods' owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Since when it is kept.
    begun: Option<Timestamp>,
    /// Pods without their sidecars that were being deleted then.
    leaving: BTreeSet<String>,
    by_owner: BTreeMap<String, Repair>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Repair {
    /// Pods that were removed to be made again and are not yet, the oldest first, and when. None is forgotten by
    /// time as long as the owner has pods.
    removed: Vec<(String, Timestamp)>,
    /// Pods of the owner that were seen since the first of them was: another takes the place of one of them.
    known: BTreeSet<String>,
    /// Tries since a pod last came back with its sidecars, or the set was edited.
    tries: u32,
    /// When the next one may be.
    not_before: Option<Timestamp>,
    /// The generation of the set that was tried.
    generation: i64,
}

/// How many pods of an owner are gone and not made again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unreplaced {
    /// Lately enough to be on their way.
    pub(crate) lately: usize,
    /// So long ago that the owner may be unable to make them, or not want to.
    pub(crate) long_ago: usize,
}

/// The pods of one owner that a set is for, with or without its sidecars.
#[derive(Default)]
pub(crate) struct Owned<'a> {
    pub(crate) with: Vec<&'a PodView>,
    pub(crate) without: Vec<&'a PodView>,
}

impl Owned<'_> {
    fn all(&self) -> impl Iterator<Item = &PodView> {
        self.with.iter().chain(&self.without).copied()
    }

    fn has(&self, uid: &str) -> bool {
        self.all().any(|pod| *pod.uid == *uid)
    }

    /// Did the owner's newest pod get its sidecars? Then the next one will, too.
    pub(crate) fn is_injected_again(&self) -> bool {
        let newest = |pods: &[&PodView]| pods.iter().filter_map(|pod| pod.created).max();
        newest(&self.with) > newest(&self.without)
    }
}

impl Repairs {
    /// A memory that is kept since then, and in which nothing was tried.
    pub fn since(begun: Timestamp) -> Self {
        Self {
            begun: Some(begun),
            ..Self::default()
        }
    }

    pub(crate) fn is_new(&self) -> bool {
        self.begun.is_none()
    }

    /// Nothing is known of what went before, but for the pods that are being deleted still.
    pub(crate) fn begin(&mut self, now: Timestamp, leaving: BTreeSet<&str>) {
        self.begun = Some(now);
        self.leaving = leaving.into_iter().map(str::to_owned).collect();
    }

    /// For how long more it knows too little to take anything for granted.
    pub(crate) fn begins(&self, now: Timestamp) -> Option<Duration> {
        let left = self
            .begun
            .map_or(SETTLE, |begun| SETTLE.saturating_sub(passed(begun, now)));
        (!left.is_zero()).then_some(left)
    }

    /// Is every pod counted by now that was on its way when this began?
    pub(crate) fn knows_those_leaving(&self, now: Timestamp) -> bool {
        self.begun
            .is_some_and(|begun| self.leaving.is_empty() || passed(begun, now) >= MISSED)
    }

    /// Was this pod, which is being deleted, that when this began, or does it begin now?
    pub(crate) fn was_leaving(&self, uid: &str) -> bool {
        self.is_new() || self.leaving.contains(uid)
    }

    /// How many pods of this owner are gone and not made again yet.
    pub(crate) fn unreplaced(&self, owner: &str, owned: &Owned<'_>, now: Timestamp) -> Unreplaced {
        let Some(repair) = self.by_owner.get(owner) else {
            return Unreplaced::default();
        };
        let new = owned
            .all()
            .filter(|pod| !repair.known.contains(&*pod.uid))
            .count();
        let missing = repair.removed.iter().filter(|(uid, _)| !owned.has(uid));
        let (lately, long_ago): (Vec<_>, Vec<_>) =
            missing.skip(new).partition(|(_, at)| passed(*at, now) < MISSED);
        Unreplaced {
            lately: lately.len(),
            long_ago: long_ago.len(),
        }
    }

    /// When the next pod that is missed no longer counts.
    pub(crate) fn lapses(&self, now: Timestamp) -> Option<Duration> {
        let removed = self.by_owner.values().flat_map(|repair| &repair.removed);
        let begun = self.begun.filter(|_| !self.leaving.is_empty());
        removed
            .map(|(_, at)| *at)
            .chain(begun)
            .map(|at| MISSED.saturating_sub(passed(at, now)))
            .filter(|left| !left.is_zero())
            .min()
    }

    /// How often it was tried in vain for this owner by the set as it is.
    pub(crate) fn tries(&self, owner: &str, generation: i64) -> u32 {
        let repair = self.by_owner.get(owner);
        repair
            .filter(|repair| repair.generation == generation)
            .map_or(0, |repair| repair.tries)
    }

    /// For how long nothing more is tried for this owner, whose pods still come back without sidecars.
    pub(crate) fn wait(&self, owner: &str, generation: i64, now: Timestamp) -> Option<Duration> {
        let repair = self.by_owner.get(owner)?;
        let until = repair.not_before.filter(|_| repair.generation == generation)?;
        let left = u64::try_from(until.as_millisecond() - now.as_millisecond()).ok()?;
        (left > 0).then(|| Duration::from_millis(left))
    }

    /// Is there anything to learn of this plan, or to forget?
    pub(crate) fn concerns(&self, plan: &Plan) -> bool {
        !self.by_owner.is_empty() || removed(plan).next().is_some()
    }

    /// Notes what a plan for this generation of the set removes, and forgets what has come back.
    pub(crate) fn learn(
        &mut self,
        owners: &BTreeMap<&str, Owned<'_>>,
        plan: &Plan,
        generation: i64,
        now: Timestamp,
    ) {
        let removed: BTreeSet<&str> = removed(plan).collect();
        for (owner, owned) in owners {
            let repair = self.by_owner.entry((*owner).to_owned()).or_default();
            repair.pair(owned, now);
            if owned.is_injected_again() || repair.generation != generation {
                repair.tries = 0;
                repair.not_before = None;
            }
            repair.generation = generation;
            for pod in owned.without.iter().filter(|pod| removed.contains(&*pod.uid)) {
                repair.note(pod, owned, now);
            }
        }
        self.by_owner.retain(|owner, repair| {
            let owned = owners.get(&**owner);
            let lately = repair.removed.iter().any(|(_, at)| passed(*at, now) < MISSED);
            let is_missing =
                !repair.removed.is_empty() && owned.is_some_and(|owned| owned.all().next().is_some());
            let is_tried = repair.tries > 0 && owned.is_some_and(|owned| !owned.without.is_empty());
            lately || is_missing || is_tried
        });
    }

    /// Owners whose pods are on their way back.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &str> {
        self.by_owner.keys().map(String::as_str)
    }
}

impl Repair {
    /// Each pod that was not seen before takes the place of one that is gone, or that its owner was asked to
    /// replace; once.
    fn pair(&mut self, owned: &Owned<'_>, now: Timestamp) {
        let is_asked = |uid: &str| {
            owned
                .without
                .iter()
                .any(|pod| *pod.uid == *uid && is_asked_to_go(pod))
        };
        if !self.removed.is_empty() {
            for pod in owned.all() {
                if !self.known.insert(pod.uid.to_string()) {
                    continue;
                }
                let gone = self.removed.iter().position(|(uid, _)| !owned.has(uid));
                let replaced = gone.or_else(|| self.removed.iter().position(|(uid, _)| is_asked(uid)));
                if let Some(replaced) = replaced {
                    self.removed.remove(replaced);
                }
            }
        }
        // One that is here long after has not been removed.
        self.removed
            .retain(|(uid, at)| !owned.has(uid) || is_asked(uid) || passed(*at, now) < MISSED);
    }

    /// This pod is removed now.
    fn note(&mut self, pod: &PodView, owned: &Owned<'_>, now: Timestamp) {
        if self.removed.is_empty() {
            self.known = owned.all().map(|pod| pod.uid.to_string()).collect();
        }
        self.removed.retain(|(uid, _)| **uid != *pod.uid);
        self.removed.push((pod.uid.to_string(), now));
        if !owned.is_injected_again() {
            self.tries = self.tries.saturating_add(1);
            let factor = 1_u32.checked_shl(self.tries - 1).unwrap_or(u32::MAX);
            let wait = FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT);
            self.not_before = now.checked_add(wait).ok();
        }
    }
}

/// Is its CloneSet asked to replace it?
pub(crate) fn is_asked_to_go(pod: &PodView) -> bool {
    pod.labels.get(SPECIFIED_DELETE).is_some()
}

/// Uids of the pods that a plan removes.
fn removed(plan: &Plan) -> impl Iterator<Item = &str> {
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    steps
        .map(|step| &step.write)
        .filter(|write| write.target().resource == ResourceId::PODS)
        .filter(|write| matches!(write.intent(), Intent::DELETE_POD | Intent::REQUEST_DELETE))
        .filter_map(|write| write.uid())
}

/// Time since; none if clocks were turned back.
fn passed(since: Timestamp, now: Timestamp) -> Duration {
    let passed = now.as_millisecond() - since.as_millisecond();
    Duration::from_millis(u64::try_from(passed).unwrap_or_default())
}
