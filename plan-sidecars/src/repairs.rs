//! What was tried for pods without their sidecars: whose pods are on their way back, and when it is of use to try again.
//!
//! Kept in memory by whoever plans, one for each set. After a restart nothing is known, and each owner is tried once more;
//! a pod is left alone for a while after it was made, so that not even a manager that restarts all the time recreates
//! pods without end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use kruise_plan_kit::{Intent, Plan, Resource};
use kruise_views::PodView;

/// How long a removed pod is missed. Its owner may not want it back.
const MISSED: Duration = Duration::from_mins(10);
/// The first wait after a try that was in vain; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_mins(1);
/// The longest.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// What one set has tried, by the uid of the pods' owner.
#[derive(Clone, Debug, Default)]
pub struct Repairs {
    by_owner: BTreeMap<String, Repair>,
}

#[derive(Clone, Debug, Default)]
struct Repair {
    /// Pods that were removed to be made again, and when.
    removed: Vec<(String, Timestamp)>,
    /// Pods of the owner when the first of them was: others since take their places.
    known: BTreeSet<String>,
    /// Tries since a pod last came back with its sidecars.
    tries: u32,
    /// When the next one may be.
    not_before: Option<Timestamp>,
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

    /// Did the owner's newest pod get its sidecars? Then the next one will, too.
    pub(crate) fn is_injected_again(&self) -> bool {
        let newest = |pods: &[&PodView]| pods.iter().filter_map(|pod| pod.created).max();
        newest(&self.with) > newest(&self.without)
    }
}

impl Repairs {
    /// How many pods of this owner are gone and not made again yet.
    pub(crate) fn unreplaced(&self, owner: &str, owned: &Owned<'_>, now: Timestamp) -> usize {
        let Some(repair) = self.by_owner.get(owner) else {
            return 0;
        };
        let gone = repair.removed.iter().filter(|(uid, at)| {
            let is_here = owned.all().any(|pod| *pod.uid == **uid);
            !is_here && passed(*at, now) < MISSED
        });
        let new = owned.all().filter(|pod| !repair.known.contains(&*pod.uid));
        gone.count().saturating_sub(new.count())
    }

    /// For how long nothing more is tried for this owner, whose pods still come back without sidecars.
    pub(crate) fn wait(&self, owner: &str, now: Timestamp) -> Option<Duration> {
        let until = self.by_owner.get(owner)?.not_before?;
        let left = u64::try_from(until.as_millisecond() - now.as_millisecond()).ok()?;
        (left > 0).then(|| Duration::from_millis(left))
    }

    /// Is there anything to learn of this plan, or to forget?
    pub(crate) fn concerns(&self, plan: &Plan) -> bool {
        !self.by_owner.is_empty() || removed(plan).next().is_some()
    }

    /// Notes what a plan removes, and forgets what has come back.
    pub(crate) fn learn(&mut self, owners: &BTreeMap<&str, Owned<'_>>, plan: &Plan, now: Timestamp) {
        let removed: BTreeSet<&str> = removed(plan).collect();
        for (owner, owned) in owners {
            let unreplaced = self.unreplaced(owner, owned, now);
            let repair = self.by_owner.entry((*owner).to_owned()).or_default();
            if owned.is_injected_again() {
                repair.tries = 0;
                repair.not_before = None;
            }
            let is_here = |uid: &str| owned.all().any(|pod| *pod.uid == *uid);
            if unreplaced == 0 && !repair.removed.iter().any(|(uid, _)| is_here(uid)) {
                repair.removed.clear();
            }
            let of_owner = owned.without.iter().filter(|pod| removed.contains(&*pod.uid));
            for pod in of_owner {
                if repair.removed.is_empty() {
                    repair.known = owned.all().map(|pod| pod.uid.to_string()).collect();
                }
                repair.removed.retain(|(uid, _)| **uid != *pod.uid);
                repair.removed.push((pod.uid.to_string(), now));
                if !owned.is_injected_again() {
                    repair.tries = repair.tries.saturating_add(1);
                    let factor = 1_u32.checked_shl(repair.tries - 1).unwrap_or(u32::MAX);
                    let wait = FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT);
                    repair.not_before = now.checked_add(wait).ok();
                }
            }
        }
        // Of an owner without any pod of the set it counts for a while what was removed.
        self.by_owner.retain(|owner, repair| {
            repair.removed.retain(|(_, at)| passed(*at, now) < MISSED);
            let has_pods = owners
                .get(&**owner)
                .is_some_and(|owned| !owned.without.is_empty());
            !repair.removed.is_empty() || (has_pods && repair.tries > 0)
        });
    }

    /// Owners whose pods are on their way back.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &str> {
        self.by_owner.keys().map(String::as_str)
    }
}

/// Uids of the pods that a plan removes.
fn removed(plan: &Plan) -> impl Iterator<Item = &str> {
    let steps = plan.chains.iter().flat_map(|chain| &chain.steps);
    steps
        .map(|step| &step.write)
        .filter(|write| write.target().resource == Resource::Pods)
        .filter(|write| matches!(write.intent(), Intent::DeletePod | Intent::RequestDelete))
        .filter_map(|write| write.uid())
}

/// Time since; none if clocks were turned back.
fn passed(since: Timestamp, now: Timestamp) -> Duration {
    let passed = now.as_millisecond() - since.as_millisecond();
    Duration::from_millis(u64::try_from(passed).unwrap_or_default())
}
