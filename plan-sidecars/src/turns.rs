//! Sets that share a pod take turns: what one has decided upon a version of the pod is not decided upon the same version
//! by another, whose write could only be refused. Nor is anything decided between two writes of one turn: it lasts until
//! its set plans again, which it does once its writes are done and seen.

use std::collections::BTreeMap;

use std::time::Duration;

use jiff::Timestamp;
use kruise_plan_kit::{Chain, Plan, Precondition, Resource, Write};

/// How long a turn lasts at most, if its set does not plan again: longer than the writes of a large plan take.
const LONGEST: Duration = Duration::from_secs(30);
/// When a plan that had to wait is made anew, if nothing changes before.
const AGAIN: Duration = Duration::from_secs(1);

/// Who has just decided upon which version of which pod.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    by_pod: BTreeMap<String, Turn>,
}

#[derive(Clone, Debug)]
struct Turn {
    set: String,
    version: String,
    /// Does more than one write follow from it?
    several: bool,
    ends: Timestamp,
}

impl Turns {
    /// Takes a turn for each pod the plan writes, and drops the chains of pods whose turn is somebody else's. Turns that
    /// the set had are over.
    pub fn admit(&mut self, set: &str, plan: &mut Plan, now: Timestamp) {
        self.by_pod.retain(|_, turn| turn.ends > now && turn.set != set);
        let before = plan.chains.len();
        plan.chains.retain(|chain| self.take(set, chain, now));
        if plan.chains.len() < before {
            plan.requeue = plan.requeue.into_iter().chain([AGAIN]).min();
        }
    }

    fn take(&mut self, set: &str, chain: &Chain, now: Timestamp) -> bool {
        let Some((uid, version)) = chain.steps.first().and_then(|step| seen(&step.write)) else {
            return true;
        };
        let is_others = |turn: &Turn| turn.set != set && (turn.several || turn.version == version);
        if self.by_pod.get(uid).is_some_and(is_others) {
            return false;
        }
        let turn = Turn {
            set: set.to_owned(),
            version: version.to_owned(),
            several: chain.steps.len() > 1,
            ends: now.checked_add(LONGEST).unwrap_or(now),
        };
        self.by_pod.insert(uid.to_owned(), turn);
        true
    }
}

/// The pod and the version of it that a write is for.
fn seen(write: &Write) -> Option<(&str, &str)> {
    match write {
        Write::Patch {
            target,
            precondition: Precondition::UidAndVersion(uid, version),
            ..
        }
        | Write::Delete {
            target,
            precondition: Precondition::UidAndVersion(uid, version),
            ..
        } if target.resource == Resource::Pods => Some((uid, version)),
        _ => None,
    }
}
