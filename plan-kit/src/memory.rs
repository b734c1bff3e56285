//! Results of the last execution for an owner. Owned by the runtime; lost at a restart, and never needed for safety.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{Intent, Need, Target, trial::Trials};

/// Results of the last execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Names that belong to objects of somebody else.
    pub taken_names: BTreeSet<String>,
    /// Objects that did not exist when the server was asked, although the request to create them may still arrive. A plan
    /// that creates objects of the resource uses these names first, so that none is created twice.
    pub late: BTreeSet<Target>,
    /// How often the server has refused writes of a pod, by its uid, since one of them succeeded. Where one of many is
    /// to be chosen, those that are refused come last.
    pub refused: BTreeMap<String, u32>,
    /// What has the name of an object that was to be created.
    pub holders: BTreeMap<String, Holder>,
    /// Names of pods that the server did not let come into being when last asked, themselves or what comes before them. Where
    /// names are given, and not made up, they come last: one of them keeps the others waiting.
    pub refused_names: BTreeSet<String>,
    /// First error among creations and deletions, if the last attempt had one.
    pub scale_error: Option<String>,
    /// First error among creations of pods and claims, if the last attempt had one.
    pub create_error: Option<String>,
    /// First error among updates, if the last attempt had one.
    pub update_error: Option<String>,
    /// What the plan before this one asked to read, a moment ago: the objects, and that there is none. Empty for the first
    /// plan of a reconcile.
    pub read: BTreeMap<Need, Option<Value>>,
    /// What plans have tried, by the keys in [`Plan::attempts`](crate::Plan::attempts). Forgotten half an hour after the
    /// last attempt.
    pub attempts: BTreeMap<String, Attempts>,
    /// What the plan before this one asked to read as [`Need::Content`] and could not be read, with the error.
    pub unread: BTreeMap<Need, String>,
    /// What the server said of new pods.
    pub trials: Trials,
    /// Objects whose contents are known although no cache has them.
    pub known: Known,
    /// Writes of copies that the last execution could not make, by object.
    pub failed_copies: BTreeMap<Target, FailedCopy>,
}

/// Versions of objects whose contents are as they are to be: they were read, or written by the last plan.
///
/// Caches of metadata do not have the contents. An object that still has the version is not read again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// What the contents are to be, as a digest. Versions that were noted for another digest say nothing.
    pub digest: String,
    /// `resourceVersion` of each object.
    pub versions: BTreeMap<Target, String>,
}

impl Known {
    /// Has this object, at this version, the contents of this digest?
    pub fn holds(&self, digest: &str, target: &Target, version: &str) -> bool {
        self.digest == digest && self.versions.get(target).is_some_and(|known| known == version)
    }
}

/// A write of a copy that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCopy {
    /// What it was for.
    pub intent: Intent,
    /// The error.
    pub message: String,
}

/// How often something was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// So many times.
    pub count: u32,
    /// The last time.
    pub last: Timestamp,
}

impl Memory {
    /// How long attempts are remembered.
    const KEPT: SignedDuration = SignedDuration::from_mins(30);

    /// Counts what a plan of this instant tries.
    pub fn count(&mut self, attempts: Vec<String>, now: Timestamp) {
        self.attempts
            .retain(|_, known| now.duration_since(known.last) <= Self::KEPT);
        for key in attempts {
            let known = self.attempts.entry(key);
            let known = known.or_insert(Attempts { count: 0, last: now });
            known.count = known.count.saturating_add(1);
            known.last = now;
        }
    }
}

/// An object that was in the way of a creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its uid.
    pub uid: String,
    /// Uids of all its owners.
    pub owners: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_until_they_are_half_an_hour_old() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let mut memory = Memory::default();
        memory.count(vec!["1/n1".into(), "1/n2".into()], at(0));
        memory.count(vec!["1/n1".into()], at(1800));
        let counts = |memory: &Memory| {
            let counts = memory.attempts.iter();
            counts
                .map(|(key, known)| (key.clone(), known.count, known.last.as_second()))
                .collect::<Vec<_>>()
        };
        let two = vec![("1/n1".into(), 2, 1800), ("1/n2".into(), 1, 0)];
        assert_eq!(counts(&memory), two);
        memory.count(Vec::new(), at(1801));
        assert_eq!(counts(&memory), [("1/n1".into(), 2, 1800)]);
        memory.count(vec!["1/n1".into()], at(3601));
        assert_eq!(counts(&memory), [("1/n1".into(), 1, 3601)]);
    }
}
