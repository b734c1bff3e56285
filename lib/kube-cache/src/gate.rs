//! Read your own writes: an owner is not planned again before the caches show its last writes.
//!
//! Whoever writes on behalf of an owner records what the caches must come to show: that a resource has reached the
//! version a write returned, or that a deleted object is gone (or at least terminating). [`Gate::check`] answers before
//! each plan. This is the consistency rule of Kubernetes enhancement KEP-5647, and takes the place of separate
//! expectations for creations, updates and deletions.
//!
//! # Invariants
//! * Never [`Verdict::Open`] while an expectation is neither met nor expired.
//! * Never closed for ever: an expectation that is not met in time is dropped and reported, so that the caller reads
//!   the server live, plans on that, and the owner heals without a restart.
//! * Skew between resources is not hidden: each resource is waited for on its own.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Version;

/// Default time after which an expectation is given up.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);

/// What a cache must come to show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expectation<R> {
    /// The resource is observed at this version or a newer one: the version a create, update or patch returned. The
    /// cache must watch every object written, or the version is reached only with the next bookmark.
    AtLeast {
        /// The written resource.
        resource: R,
        /// Version returned by the write.
        version: Version,
    },
    /// The object is no longer present, or terminating. Says nothing about an object the cache has not seen yet: the
    /// creation needs its own [`Expectation::AtLeast`].
    Gone {
        /// The deleted object's resource.
        resource: R,
        /// The deleted object's uid.
        uid: Box<str>,
    },
}

/// What the caches show now.
pub trait Seen<R> {
    /// Newest observed version of the resource, `None` while it is not synced.
    fn observed(&self, resource: R) -> Option<Version>;
    /// Whether an object with this uid is in the cache and not terminating.
    fn present(&self, resource: R, uid: &str) -> bool;
}

/// Whether an owner may be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<R> {
    /// All recorded writes are visible: plan.
    Open,
    /// Do not plan yet. A cache event usually reopens the gate; try again after `wait` at the latest.
    Closed {
        /// Time until the first expectation expires; never zero.
        wait: Duration,
        /// When the oldest unmet expectation was recorded.
        since: Duration,
    },
    /// These were not met in time and are dropped. Read the listed resources live, then plan. Expectations recorded
    /// later than these stay; [`Gate::forget`] drops them if the live read covers them.
    TimedOut(Vec<Expectation<R>>),
}

/// Unmet expectations by owner. Durations are time since a fixed start.
#[derive(Clone, Debug)]
pub struct Gate<K, R> {
    timeout: Duration,
    /// With the time each was last recorded. Never an empty inner map.
    owners: BTreeMap<K, BTreeMap<Expectation<R>, Duration>>,
}

impl<K: Ord + Clone, R: Ord + Copy> Gate<K, R> {
    /// A gate that gives an expectation up after `timeout`.
    pub const fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            owners: BTreeMap::new(),
        }
    }

    /// Closes the gate for `owner` until the caches show this. Recording the same again renews its time.
    pub fn record(&mut self, owner: K, expectation: Expectation<R>, now: Duration) {
        self.owners.entry(owner).or_default().insert(expectation, now);
    }

    /// Drops what is met or expired, and returns whether `owner` may be planned.
    pub fn check(&mut self, owner: &K, seen: &impl Seen<R>, now: Duration) -> Verdict<R> {
        let Some(pending) = self.owners.get_mut(owner) else {
            return Verdict::Open;
        };
        pending.retain(|expectation, _| !expectation.is_met(seen));
        let mut expired = Vec::new();
        pending.retain(|expectation, recorded| {
            let is_expired = now.saturating_sub(*recorded) >= self.timeout;
            if is_expired {
                expired.push(expectation.clone());
            }
            !is_expired
        });
        let since = pending.values().min().copied();
        if since.is_none() {
            self.owners.remove(owner);
        }
        match since {
            _ if !expired.is_empty() => Verdict::TimedOut(expired),
            // Nothing left is expired, so the oldest one has time.
            Some(since) => Verdict::Closed {
                wait: since.saturating_add(self.timeout).saturating_sub(now),
                since,
            },
            None => Verdict::Open,
        }
    }

    /// Drops all expectations of an owner: it is gone, or was just read live.
    pub fn forget(&mut self, owner: &K) {
        self.owners.remove(owner);
    }

    /// Owners with unmet expectations as of their last check, and when the oldest of each was recorded: for metrics
    /// that show leaks.
    pub fn waiting(&self) -> impl Iterator<Item = (&K, Duration)> {
        self.owners
            .iter()
            .filter_map(|(owner, pending)| Some((owner, pending.values().min().copied()?)))
    }
}

impl<K: Ord + Clone, R: Ord + Copy> Default for Gate<K, R> {
    /// Five minutes of patience, OpenKruise's `--expectation-timeout`.
    fn default() -> Self {
        Self::new(DEFAULT_TIMEOUT)
    }
}

impl<R: Copy> Expectation<R> {
    fn is_met(&self, seen: &impl Seen<R>) -> bool {
        match self {
            Self::AtLeast { resource, version } => seen.observed(*resource) >= Some(*version),
            // An empty cache that never synced proves nothing about what is gone.
            Self::Gone { resource, uid } => {
                seen.observed(*resource).is_some() && !seen.present(*resource, uid)
            }
        }
    }
}
