//! The write lock of each pod that several sets share. What one set has decided on a version of the pod, another
//! does not decide on the same version: its write could only be refused. Nor is anything decided between two writes
//! of one holder. A lock has no timeout, because the writes of a large plan take as long as they take: it is
//! released when its set plans again, which it does once its writes are done and seen, or when the set is gone.
//!
//! A set whose write of a pod was refused tries again, ever more rarely, and would lock the pod in between for
//! good. So its lock gives way to any other set: at worst one of their writes is overtaken by the other.

use std::{collections::BTreeMap, time::Duration};

use kruise_plan_kit::{Memory, ObjectWrites, Plan, Precondition, ResourceId, Write};

/// When a plan that had to wait is made again, if nothing changes before.
const AGAIN: Duration = Duration::from_secs(1);

/// Which set has just decided on which version of which pod.
#[derive(Clone, Debug, Default)]
pub struct WriteLocks {
    by_pod: BTreeMap<String, Lock>,
}

#[derive(Clone, Debug)]
struct Lock {
    set: String,
    version: String,
    /// Does the holder write the pod more than once?
    several: bool,
    /// Was the holder's last write of the pod refused?
    refused: bool,
}

impl WriteLocks {
    /// Locks each pod that the plan writes, and drops the writes of pods that another set has locked. Locks that
    /// the set had are released. `memory` is that of the set's last execution.
    pub fn lock(&mut self, set: &str, plan: &mut Plan, memory: &Memory) {
        self.release(set);
        let before = plan.writes.len();
        plan.writes.retain(|object| self.take(set, object, memory));
        if plan.writes.len() < before {
            plan.requeue_after([AGAIN]);
        }
    }

    /// A set writes nothing any more: it is gone, or cannot be read.
    pub fn release(&mut self, set: &str) {
        self.by_pod.retain(|_, lock| lock.set != set);
    }

    fn take(&mut self, set: &str, object: &ObjectWrites, memory: &Memory) -> bool {
        let Some((uid, version)) = object.steps.first().and_then(|step| seen(&step.write)) else {
            return true;
        };
        let is_others = |lock: &Lock| {
            let is_held = lock.several || lock.version == version;
            lock.set != set && is_held && !lock.refused
        };
        if self.by_pod.get(uid).is_some_and(is_others) {
            return false;
        }
        let lock = Lock {
            set: set.to_owned(),
            version: version.to_owned(),
            several: object.steps.len() > 1,
            refused: memory.refused.contains_key(uid),
        };
        self.by_pod.insert(uid.to_owned(), lock);
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
