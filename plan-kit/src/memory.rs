//! Results of the last execution for an owner. Owned by the runtime; lost at a restart, and never needed for safety.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{Intent, Need, Target, newest::Newest, trial::Trials};

/// Results of the last execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Names that belong to objects of somebody else.
    pub taken_names: BTreeSet<String>,
    /// Objects that did not exist when the server was asked, although the request to create them may still arrive.
    /// A plan that creates objects of the resource uses these names first, so that none is created twice.
    pub late: BTreeSet<Target>,
    /// How often the server has refused writes of a pod, by its uid, since one of them succeeded. Where one of many is
    /// to be chosen, those that are refused come last.
    pub refused: BTreeMap<String, u32>,
    /// What has the name of an object that was to be created.
    pub holders: BTreeMap<String, Holder>,
    /// Names of pods that the server did not let come into being when last asked, themselves or what comes before
    /// them. Where names are given, and not made up, they come last: one of them keeps the others waiting.
    pub refused_names: BTreeSet<String>,
    /// First error among creations and deletions, if the last attempt had one.
    pub scale_error: Option<String>,
    /// First error among creations of pods and claims, if the last attempt had one.
    pub create_error: Option<String>,
    /// First error among updates, if the last attempt had one.
    pub update_error: Option<String>,
    /// Has this reconcile read what a plan before this one asked for?
    pub has_read: bool,
    /// What the plan before this one asked to read, a moment ago: the objects, and that there is none. Empty for
    /// the first plan of a reconcile.
    pub read: BTreeMap<Need, Option<Value>>,
    /// What plans have tried, by the keys in [`Plan::attempts`](crate::Plan::attempts). Forgotten half an hour
    /// after the last attempt.
    pub attempts: BTreeMap<String, Attempts>,
    /// What plans asked to read as [`Need::Content`] and could not be read so far. Forgotten half an hour after the
    /// last attempt.
    pub unread: BTreeMap<Need, Unread>,
    /// What the server said of new pods.
    pub trials: Trials,
    /// Objects whose contents are known although no cache has them.
    pub known: Known,
    /// The newest pod that each node had, as the last plan knew it.
    pub newest: Arc<Newest>,
    /// The pods that the last execution created: their uids by name.
    pub created: Arc<BTreeMap<String, String>>,
    /// Writes of copies that could not be made so far, by object. Forgotten half an hour after the last attempt.
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
    /// What the contents were to be, as the digest of [`Known`].
    pub digest: String,
    /// The version of the copy that the write was for, if there was a copy.
    pub version: Option<String>,
    /// How often this write has failed.
    pub attempts: Attempts,
}

/// An object that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The last error.
    pub error: String,
    /// How often reading it has failed.
    pub attempts: Attempts,
}

/// How often something was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// So many times.
    pub count: u32,
    /// The last time.
    pub last: Timestamp,
}

impl Attempts {
    /// The longest pause after attempts that have no limit of their own.
    pub const LONGEST_PAUSE: Duration = Duration::from_mins(5);

    /// These and another one.
    #[must_use]
    pub fn and_now(before: Option<Self>, now: Timestamp) -> Self {
        let count = before.map_or(0, |before| before.count).saturating_add(1);
        Self { count, last: now }
    }

    /// How much is left of the pause after the last attempt, if anything is: a second after the first one, and twice as
    /// long after each further one.
    pub fn left(&self, longest: Duration, now: Timestamp) -> Option<Duration> {
        let doublings = self.count.checked_sub(1)?.min(16);
        let pause = Duration::from_secs(1 << doublings).min(longest);
        let passed = now.duration_since(self.last).max(SignedDuration::ZERO);
        let left = pause.checked_sub(passed.unsigned_abs());
        left.filter(|left| !left.is_zero())
    }
}

impl Memory {
    /// How long attempts are remembered.
    const KEPT: SignedDuration = SignedDuration::from_mins(30);

    /// Counts what a plan of this instant tries.
    pub fn count(&mut self, attempts: Vec<String>, now: Timestamp) {
        let is_kept = |known: &Attempts| now.duration_since(known.last) <= Self::KEPT;
        self.attempts.retain(|_, known| is_kept(known));
        self.unread.retain(|_, unread| is_kept(&unread.attempts));
        self.failed_copies.retain(|_, failed| is_kept(&failed.attempts));
        for key in attempts {
            let before = self.attempts.get(&key).copied();
            self.attempts.insert(key, Attempts::and_now(before, now));
        }
    }

    /// Notes what came of a read that a plan asked for.
    pub fn note(&mut self, need: Need, read: Result<Option<Value>, String>, now: Timestamp) {
        self.has_read = true;
        match read {
            Ok(object) => {
                self.unread.remove(&need);
                self.read.insert(need, object);
            }
            Err(error) => {
                let before = self.unread.get(&need).map(|unread| unread.attempts);
                let attempts = Attempts::and_now(before, now);
                self.unread.insert(need, Unread { error, attempts });
            }
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
    use crate::ResourceId;

    #[test]
    fn the_pause_after_attempts_doubles_up_to_the_longest() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let left = |count, now| {
            let attempts = Attempts { count, last: at(100) };
            attempts
                .left(Attempts::LONGEST_PAUSE, at(now))
                .map(|left| left.as_secs())
        };
        assert_eq!(
            [1, 2, 3, 9, 10, u32::MAX].map(|count| left(count, 100)),
            [1, 2, 4, 256, 300, 300].map(Some)
        );
        assert_eq!(
            [(3, 103), (3, 104), (0, 100)].map(|(count, now)| left(count, now)),
            [Some(1), None, None]
        );
        assert_eq!(left(1, 0), Some(1), "the clock was set back");
    }

    #[test]
    fn what_cannot_be_read_is_remembered_until_it_is_read() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let need = || Need::Content(ResourceId::PODS, "shop".into(), "web".into());
        let mut memory = Memory::default();
        memory.note(need(), Err("no".into()), at(0));
        memory.note(need(), Err("still no".into()), at(7));
        let unread = Unread {
            error: "still no".into(),
            attempts: Attempts {
                count: 2,
                last: at(7),
            },
        };
        assert_eq!(memory.unread.get(&need()), Some(&unread));
        let mut late = memory.clone();
        late.count(Vec::new(), at(1808));
        assert!(late.unread.is_empty());
        memory.note(need(), Ok(None), at(8));
        assert!(memory.unread.is_empty() && memory.read.contains_key(&need()));
    }

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
