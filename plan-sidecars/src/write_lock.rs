//! Sets that share a pod take turns: what one has decided upon a version of the pod is not decided upon the same version
//! by another, whose write could only be refused. Nor is anything decided between two writes of one turn. A turn has no
//! clock, for the writes of a large plan take as long as they take: it ends when its set plans again, which it does once
//! its writes are done and seen, or when the set is gone.

use std::{collections::BTreeMap, time::Duration};

use kruise_plan_kit::{Chain, Plan, Precondition, ResourceId, Write};

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
}

impl Turns {
    /// Takes a turn for each pod the plan writes, and drops the chains of pods whose turn is somebody else's. Turns that
    /// the set had are over.
    pub fn admit(&mut self, set: &str, plan: &mut Plan) {
        self.forget(set);
        let before = plan.chains.len();
        plan.chains.retain(|chain| self.take(set, chain));
        if plan.chains.len() < before {
            plan.requeue_after([AGAIN]);
        }
    }

    /// A set writes nothing any more: it is gone, or cannot be read.
    pub fn forget(&mut self, set: &str) {
        self.by_pod.retain(|_, turn| turn.set != set);
    }

    fn take(&mut self, set: &str, chain: &Chain) -> bool {
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
        } if target.resource == ResourceId::PODS => Some((uid, version)),
        _ => None,
    }
}
