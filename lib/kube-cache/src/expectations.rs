//! Read your own writes: an owner is not reconciled again before the caches contain its last writes.
//!
//! After each write on behalf of an owner, the caller records an expectation: that the cache of a resource reaches the
//! version that the write returned, or that a deleted object is gone or terminating. [`Expectations::check`] is called
//! before each reconcile. This is the consistency rule of Kubernetes enhancement KEP-5647. It replaces separate
//! expectations for creations, updates and deletions.
//!
//! # Invariants
//! * Never [`Verdict::Satisfied`] while an expectation is neither met nor expired.
//! * Never pending for ever: an expectation that is not met in time is dropped and reported. The caller then reads the
//!   server live and reconciles with that, so a lost watch event needs no restart.
//! * Each resource has its own version: one cache may be ahead of another.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Version;

/// Default time after which an expectation expires.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);

/// What a cache must show before the owner is reconciled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expectation<R> {
    /// The cache has observed this version of the resource or a newer one: the version that a create, update or patch
    /// returned. If the cache does not watch the written object, it reaches the version only with the next bookmark.
    AtLeast {
        /// The written resource.
        resource: R,
        /// Version returned by the write.
        version: Version,
    },
    /// The object is no longer present, or terminating. This is also met before the cache has observed the object: its
    /// creation needs its own [`Expectation::AtLeast`].
    Gone {
        /// The deleted object's resource.
        resource: R,
        /// The deleted object's uid.
        uid: Box<str>,
    },
}

/// The current state of the caches.
pub trait CacheState<R> {
    /// Newest observed version of the resource, `None` while it is not synced.
    fn observed(&self, resource: R) -> Option<Version>;
    /// Whether an object with this uid is in the cache and not terminating.
    fn present(&self, resource: R, uid: &str) -> bool;
}

/// Whether an owner may be reconciled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<R> {
    /// The caches contain all recorded writes: reconcile.
    Satisfied,
    /// Do not reconcile yet. A cache event usually satisfies the expectations. Check again after `wait` at the latest.
    Pending {
        /// Time until the first expectation expires; never zero.
        wait: Duration,
        /// When the oldest unmet expectation was recorded.
        since: Duration,
    },
    /// These were not met in time and are dropped. Read their resources live, then reconcile. Expectations that were
    /// recorded later stay; [`Expectations::forget`] drops them if the live read covers them.
    TimedOut(Vec<Expectation<R>>),
}

/// Unmet expectations by owner. Durations are time since a fixed start.
#[derive(Clone, Debug)]
pub struct Expectations<K, R> {
    timeout: Duration,
    /// Each with the time of its last recording. An inner map is never empty.
    owners: BTreeMap<K, BTreeMap<Expectation<R>, Duration>>,
}

impl<K: Ord + Clone, R: Ord + Copy> Expectations<K, R> {
    /// Expectations that expire after `timeout`.
    pub const fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            owners: BTreeMap::new(),
        }
    }

    /// Adds an expectation of `owner`. Recording the same one again restarts its timeout.
    pub fn record(&mut self, owner: K, expectation: Expectation<R>, now: Duration) {
        self.owners.entry(owner).or_default().insert(expectation, now);
    }

    /// Drops the expectations that are met or expired, and returns whether `owner` may be reconciled.
    pub fn check(&mut self, owner: &K, caches: &impl CacheState<R>, now: Duration) -> Verdict<R> {
        let Some(pending) = self.owners.get_mut(owner) else {
            return Verdict::Satisfied;
        };
        pending.retain(|expectation, _| !expectation.is_met(caches));
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
            // No remaining expectation is expired, so `wait` is not zero.
            Some(since) => Verdict::Pending {
                wait: since.saturating_add(self.timeout).saturating_sub(now),
                since,
            },
            None => Verdict::Satisfied,
        }
    }

    /// Drops all expectations of an owner, because it was deleted or just read live.
    pub fn forget(&mut self, owner: &K) {
        self.owners.remove(owner);
    }

    /// Owners with unmet expectations as of their last check, each with the time of its oldest one: for metrics that
    /// show leaks.
    pub fn waiting(&self) -> impl Iterator<Item = (&K, Duration)> {
        self.owners
            .iter()
            .filter_map(|(owner, pending)| Some((owner, pending.values().min().copied()?)))
    }
}

impl<K: Ord + Clone, R: Ord + Copy> Default for Expectations<K, R> {
    /// Five minutes, the default of OpenKruise's `--expectation-timeout`.
    fn default() -> Self {
        Self::new(DEFAULT_TIMEOUT)
    }
}

impl<R: Copy> Expectation<R> {
    fn is_met(&self, caches: &impl CacheState<R>) -> bool {
        match self {
            Self::AtLeast { resource, version } => caches.observed(*resource) >= Some(*version),
            // A cache that is not synced is empty, whatever exists on the server.
            Self::Gone { resource, uid } => {
                caches.observed(*resource).is_some() && !caches.present(*resource, uid)
            }
        }
    }
}
