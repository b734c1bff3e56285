//! Decides which status is written when, without I/O.
//!
//! # Guarantees
//! - A status that was computed from an object older than our last write of it is never sent: a merge patch is a
//!   difference from the object it was computed from. The reconcile of the newer object computes a new one.
//! - After a conflict, a status waits for one computed from newer state to replace it. If none is submitted in
//!   time, the status is sent again.

use std::{collections::BTreeMap, time::Duration};

use kruise_plan_kit::StatusPatch;
use kube_cache::Version;

/// Shortest time between two status writes of one object.
const INTERVAL: Duration = Duration::from_millis(500);
/// Shortest time between two urgent ones.
const URGENT_INTERVAL: Duration = Duration::from_millis(100);
/// Longest time between two attempts.
const LONGEST: Duration = Duration::from_secs(30);
/// Time after which the caches are assumed to contain a write.
const CACHE_DELAY: Duration = Duration::from_secs(10);

/// Pending statuses of owners by key. Times are durations since a fixed start.
#[derive(Debug)]
pub(super) struct Coalescer<K> {
    objects: BTreeMap<K, Pending>,
}

impl<K> Default for Coalescer<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Default)]
struct Pending {
    /// To be written.
    patch: Option<StatusPatch>,
    /// Being written.
    in_flight: Option<StatusPatch>,
    /// When the last write was sent.
    sent: Option<Duration>,
    /// The version of the last write: the server's object is at least as new.
    at_least: Option<Version>,
    /// The newest version that caused a conflict.
    outdated: Option<Version>,
    failures: u32,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Stored, with this version of the object.
    Yes(Option<Version>),
    /// The object was deleted.
    Gone,
    /// Conflict: the object is newer than the one that the status was computed from.
    Outdated,
    /// Failed; to be retried.
    No,
}

impl<K: Ord + Clone> Coalescer<K> {
    /// Sets the pending patch. Versions of long completed writes are ignored: after a restore from a backup, the
    /// versions of the server are lower.
    pub(super) fn submit(&mut self, key: &K, patch: StatusPatch, now: Duration) {
        let pending = self.objects.entry(key.clone()).or_default();
        if pending.is_over(now) {
            *pending = Pending::default();
        }
        let repeated = pending.in_flight.as_ref() == Some(&patch);
        pending.patch = (!repeated && pending.is_current(&patch)).then_some(patch);
    }

    /// Drops the pending patch, because the status is already correct.
    pub(super) fn withdraw(&mut self, key: &K) {
        if let Some(pending) = self.objects.get_mut(key) {
            pending.patch = None;
        }
    }

    /// The patches due now, `most` at a time; each is in flight until it is [`Self::ended`].
    pub(super) fn due(&mut self, now: Duration, most: usize) -> Vec<(K, StatusPatch)> {
        self.forget(now);
        let ready = self
            .objects
            .iter_mut()
            .filter(|(_, pending)| pending.due_at().is_some_and(|at| at <= now));
        let taken = ready.take(most).filter_map(|(key, pending)| {
            let patch = pending.patch.take()?;
            pending.sent = Some(now);
            pending.in_flight = Some(patch.clone());
            Some((key.clone(), patch))
        });
        taken.collect()
    }

    /// Drops objects whose last write is long completed.
    fn forget(&mut self, now: Duration) {
        self.objects.retain(|_, pending| !pending.is_over(now));
    }

    /// When the next patch is due.
    pub(super) fn next(&self) -> Option<Duration> {
        self.objects.values().filter_map(Pending::due_at).min()
    }

    /// Records the end of a write. A failed or outdated one becomes pending again, unless a newer patch is pending.
    pub(super) fn ended(&mut self, key: &K, result: Written) {
        let Some(pending) = self.objects.get_mut(key) else {
            return;
        };
        let sent = pending.in_flight.take();
        if result == Written::No {
            pending.failures = pending.failures.saturating_add(1);
            pending.patch = pending.patch.take().or(sent);
            return;
        }
        pending.failures = 0;
        if let Written::Yes(version) = result {
            pending.at_least = pending.at_least.max(version);
        }
        if result == Written::Outdated {
            pending.outdated = pending.outdated.max(sent.as_ref().and_then(version_of));
            pending.patch = pending.patch.take().or(sent);
        }
        pending.patch = pending.patch.take().filter(|patch| pending.is_current(patch));
    }

    /// Drops patches that failed or were outdated, because the process stops. The next leader computes them again.
    pub(super) fn give_up(&mut self) {
        for pending in self.objects.values_mut() {
            let has_failed = pending.failures > 0;
            pending.patch = pending
                .patch
                .take()
                .filter(|patch| !has_failed && !pending.is_outdated(patch));
        }
    }
}

impl Pending {
    /// Whether nothing is pending or in flight and the caches contain the last write.
    fn is_over(&self, now: Duration) -> bool {
        let is_cached = self.sent.is_none_or(|at| now.saturating_sub(at) > CACHE_DELAY);
        self.patch.is_none() && self.in_flight.is_none() && is_cached
    }

    fn due_at(&self) -> Option<Duration> {
        let patch = self.patch.as_ref().filter(|_| self.in_flight.is_none())?;
        let interval = if patch.urgent { URGENT_INTERVAL } else { INTERVAL };
        let interval = interval.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
        let interval = if self.is_outdated(patch) {
            interval.max(CACHE_DELAY)
        } else {
            interval
        };
        Some(self.sent.map_or(Duration::ZERO, |at| at + interval))
    }

    /// Whether the patch was computed from an object at least as new as our last write. True for versions that
    /// cannot be compared: the server then decides.
    fn is_current(&self, patch: &StatusPatch) -> bool {
        match (version_of(patch), self.at_least) {
            (Some(from), Some(at_least)) => from >= at_least,
            _ => true,
        }
    }

    /// Whether the patch was computed from an object that caused a conflict. True for versions that cannot be compared.
    fn is_outdated(&self, patch: &StatusPatch) -> bool {
        self.outdated
            .is_some_and(|outdated| version_of(patch).is_none_or(|from| from <= outdated))
    }
}

fn version_of(patch: &StatusPatch) -> Option<Version> {
    patch.version.parse().ok()
}

#[cfg(test)]
mod tests;
