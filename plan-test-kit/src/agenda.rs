//! When controllers plan: after a change, and when the last plan asked for it. A world that plans whenever it likes
//! does not see that a plan forgot to ask.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::Plan;

/// What was planned last, by key.
#[derive(Clone, Debug)]
pub struct Agenda<K>(BTreeMap<K, Planned>);

#[derive(Clone, Copy, Debug)]
struct Planned {
    /// Of everything that exists, when it was planned.
    version: u64,
    again: Option<Timestamp>,
}

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Agenda<K> {
    /// Is the key to be planned, at this version of everything and at this time?
    pub fn is_due(&self, key: &K, version: u64, now: Timestamp) -> bool {
        self.0.get(key).is_none_or(|planned| {
            planned.version != version || planned.again.is_some_and(|again| again <= now)
        })
    }

    /// The key was planned at this version and time, with this result.
    pub fn note(&mut self, key: K, version: u64, now: Timestamp, plan: &Plan) {
        let after = |after: Duration| SignedDuration::try_from(after).ok();
        let again = plan
            .requeue
            .and_then(after)
            .and_then(|after| now.checked_add(after).ok());
        self.0.insert(key, Planned { version, again });
    }

    /// The key is to be planned again for a reason of its own, such as a write that was refused.
    pub fn forget(&mut self, key: &K) {
        self.0.remove(key);
    }

    /// A write of the key was refused for the second time: the loop tries again a second later.
    pub fn retry(&mut self, key: &K, now: Timestamp) {
        if let Some(planned) = self.0.get_mut(key) {
            let again = now + SignedDuration::from_secs(1);
            planned.again = planned.again.map_or(again, |sooner| sooner.min(again)).into();
        }
    }

    /// All keys are to be planned, as after a start of the manager.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// A version of what a world has in fields that tests change as they like: it is another one if these are.
pub fn fingerprint(state: &impl Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{state:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_planned_after_a_change_and_when_its_plan_asked_for_it() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let at = |seconds| now + SignedDuration::from_secs(seconds);
        let mut agenda = Agenda::default();
        assert!(agenda.is_due(&"a", 1, now));
        agenda.note("a", 1, now, &Plan::default());
        assert!(!agenda.is_due(&"a", 1, at(3600)), "nobody asked");
        assert!(agenda.is_due(&"a", 2, now));
        let mut plan = Plan::default();
        plan.requeue_after([Duration::from_secs(10)]);
        agenda.note("a", 2, now, &plan);
        assert!(!agenda.is_due(&"a", 2, at(9)));
        assert!(agenda.is_due(&"a", 2, at(10)));
        agenda.retry(&"a", now);
        assert!(agenda.is_due(&"a", 2, at(1)));
        agenda.forget(&"a");
        assert!(agenda.is_due(&"a", 2, now));
    }
}
