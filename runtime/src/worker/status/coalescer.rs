//! What is to be written when, without I/O.
//!
//! # What it promises
//! - A status that was made from an object older than our own last write of it is never sent: its difference was taken
//!   from something else than what it would be merged into. The object that shows the write makes a new one.
//! - What the server found outdated waits for a status made from newer state to take its place. Where none comes, the
//!   server was wrong, and it is sent again.

use std::{collections::BTreeMap, time::Duration};

use kruise_plan_kit::StatusPatch;
use kube_cache::Version;

/// Shortest time between two status writes of one object.
const INTERVAL: Duration = Duration::from_millis(500);
/// Shortest time between two urgent ones.
const URGENT_INTERVAL: Duration = Duration::from_millis(100);
/// Longest time between two attempts.
const LONGEST: Duration = Duration::from_secs(30);
/// How long what the server has is taken to be on its way to the cache.
const ON_ITS_WAY: Duration = Duration::from_secs(10);

/// Statuses of owners that are named by `K`. Times are durations since a fixed start.
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
    /// When the last write went out.
    sent: Option<Duration>,
    /// The server has an object that is at least as new.
    at_least: Option<Version>,
    /// The newest version of which the server said that it is outdated.
    doubted: Option<Version>,
    failures: u32,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It is stored, in this version of the object.
    Yes(Option<Version>),
    /// The object is gone.
    Gone,
    /// The object is newer than the one that the status was made from.
    Outdated,
    /// Try again.
    No,
}

impl<K: Ord + Clone> Coalescer<K> {
    /// Takes a patch in place of one that waits. What a long ended write told does not judge it: where a server came back
    /// with an older store, versions begin anew.
    pub(super) fn submit(&mut self, key: &K, patch: StatusPatch, now: Duration) {
        let pending = self.objects.entry(key.clone()).or_default();
        if pending.is_over(now) {
            *pending = Pending::default();
        }
        let repeated = pending.in_flight.as_ref() == Some(&patch);
        pending.patch = (!repeated && pending.is_current(&patch)).then_some(patch);
    }

    /// The status is as it should be: what waits is out of date.
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

    /// Forgets what long ended writes told.
    fn forget(&mut self, now: Duration) {
        self.objects.retain(|_, pending| !pending.is_over(now));
    }

    /// When the next patch is due.
    pub(super) fn next(&self) -> Option<Duration> {
        self.objects.values().filter_map(Pending::due_at).min()
    }

    /// A write ended. One that failed or was outdated comes again, unless a newer patch waits.
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
            pending.doubted = pending.doubted.max(sent.as_ref().and_then(version_of));
            pending.patch = pending.patch.take().or(sent);
        }
        pending.patch = pending.patch.take().filter(|patch| pending.is_current(patch));
    }

    /// Drops what failed before or was outdated: the process ends, and its successor reports anew.
    pub(super) fn give_up(&mut self) {
        for pending in self.objects.values_mut() {
            let tried = pending.failures > 0;
            pending.patch = pending
                .patch
                .take()
                .filter(|patch| !tried && !pending.is_doubted(patch));
        }
    }
}

impl Pending {
    /// Nothing waits or is being written, and what the last write told is in every cache by now.
    fn is_over(&self, now: Duration) -> bool {
        let told = self.sent.is_none_or(|at| now.saturating_sub(at) > ON_ITS_WAY);
        self.patch.is_none() && self.in_flight.is_none() && told
    }

    fn due_at(&self) -> Option<Duration> {
        let patch = self.patch.as_ref().filter(|_| self.in_flight.is_none())?;
        let interval = if patch.urgent { URGENT_INTERVAL } else { INTERVAL };
        let interval = interval.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
        let interval = if self.is_doubted(patch) {
            interval.max(ON_ITS_WAY)
        } else {
            interval
        };
        Some(self.sent.map_or(Duration::ZERO, |at| at + interval))
    }

    /// Was it made from an object that is as new as what the server is known to have? Versions that cannot be compared
    /// leave that question to the server.
    fn is_current(&self, patch: &StatusPatch) -> bool {
        match (version_of(patch), self.at_least) {
            (Some(from), Some(at_least)) => from >= at_least,
            _ => true,
        }
    }

    /// Was it made from an object of which the server said that it is outdated? What cannot be compared is doubted.
    fn is_doubted(&self, patch: &StatusPatch) -> bool {
        self.doubted
            .is_some_and(|doubted| version_of(patch).is_none_or(|from| from <= doubted))
    }
}

fn version_of(patch: &StatusPatch) -> Option<Version> {
    patch.version.parse().ok()
}

#[cfg(test)]
mod tests;
