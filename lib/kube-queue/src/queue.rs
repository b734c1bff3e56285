//! The queue itself: pending work of each key, by its state.
//!
//! A key is *in flight*, has *pending* work, or both. Pending work of a key that is not in flight is either delayed
//! (due in the future) or ready. Pending work of a key in flight is held until that key is done. Every call first
//! makes due keys ready, so that the order does not depend on how often the driver calls.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::coalesce::Windows;
use crate::delayed::Delayed;
use crate::fairness::Ready;
use crate::{Backoff, Bucket, Config, Counters, Done, Popped, Priority, Unfinished};

/// A work queue of keys. See the [crate](crate) for its guarantees. `now` is time since any fixed start and must not
/// decrease; an earlier `now` counts as the latest one.
#[derive(Clone, Debug)]
pub struct Queue<K> {
    namespace_of: fn(&K) -> &str,
    pending: BTreeMap<K, Pending>,
    /// When each key in flight was popped.
    in_flight: BTreeMap<K, Duration>,
    ready: Ready<K>,
    delayed: Delayed<K>,
    windows: Windows<K>,
    backoff: Backoff<K>,
    bucket: Bucket,
    counters: Counters,
    next_arrival: u64,
    now: Duration,
}

#[derive(Clone, Debug)]
struct Pending {
    priority: Priority,
    due: Duration,
    /// The coalescing window that opens when the key becomes ready.
    window: Option<Duration>,
    place: Place,
}

/// The state of pending work, with its arrival number.
#[derive(Clone, Copy, Debug)]
enum Place {
    Ready(u64),
    Delayed(u64),
    /// The key is in flight.
    Held,
}

impl<K: Ord + Clone> Queue<K> {
    /// An empty queue. `namespace_of` gives the namespace of a key, between which the queue is fair.
    pub const fn new(config: Config, namespace_of: fn(&K) -> &str) -> Self {
        Self {
            namespace_of,
            pending: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            ready: Ready::new(config.live_per_initial),
            delayed: Delayed::new(),
            windows: Windows::new(),
            backoff: Backoff::new(config.backoff_base, config.backoff_cap),
            bucket: Bucket::new(config.token_interval, config.burst),
            counters: Counters { adds: 0, retries: 0 },
            next_arrival: 0,
            now: Duration::ZERO,
        }
    }

    /// Makes the key ready now.
    pub fn push(&mut self, key: K, priority: Priority, now: Duration) {
        self.advance(now);
        self.schedule(key, priority, self.now, None);
    }

    /// Makes the key ready after `delay`, unless it is due earlier already.
    pub fn push_after(&mut self, key: K, priority: Priority, delay: Duration, now: Duration) {
        self.advance(now);
        self.counters.retries = self.counters.retries.saturating_add(1);
        self.schedule(key, priority, self.now.saturating_add(delay), None);
    }

    /// Makes the key ready after the longer of its own backoff and the wait for a token of the shared bucket. Returns
    /// that delay. [`Queue::forget`] resets the backoff.
    pub fn push_rate_limited(&mut self, key: K, priority: Priority, now: Duration) -> Duration {
        self.advance(now);
        let delay = self.backoff.fail(&key).max(self.bucket.reserve(self.now));
        self.push_after(key, priority, delay, now);
        delay
    }

    /// Makes the key ready at once if no window of it is open, otherwise at the end of that window. When the key
    /// becomes ready in this mode, a new window opens: it becomes ready at most once for each window, however often
    /// it is pushed. Other pushes do not wait for the window. They open one only if they advance work pushed in
    /// this mode.
    pub fn push_coalesced(&mut self, key: K, priority: Priority, window: Duration, now: Duration) {
        self.advance(now);
        let due = self.windows.end(&key).unwrap_or(self.now).max(self.now);
        self.schedule(key, priority, due, Some(window));
    }

    /// Resets the backoff of a key that succeeded or was deleted: its next rate-limited push starts at the shortest
    /// delay. Queued work stays.
    pub fn forget(&mut self, key: &K) {
        self.backoff.forget(key);
    }

    /// Rate-limited pushes of the key since the last [`Queue::forget`].
    pub fn failures(&self, key: &K) -> u32 {
        self.backoff.failures(key)
    }

    /// The next key to work on. The caller must call [`Queue::done`] for it.
    ///
    /// A ready key, with `p` keys of its namespace that were ready before it and at most `m` namespaces with ready keys
    /// of its priority, is returned within `(p + 1) × m` turns of its priority. While live keys are ready, initial
    /// keys have one turn in `live_per_initial + 1`. Without ready live keys they have all turns.
    pub fn pop(&mut self, now: Duration) -> Option<Popped<K>> {
        self.advance(now);
        let key = self.ready.pop()?;
        let pending = self.pending.remove(&key)?;
        self.in_flight.insert(key.clone(), self.now);
        let waited = self.now.saturating_sub(pending.due);
        Some(Popped {
            key,
            priority: pending.priority,
            waited,
        })
    }

    /// Ends the work on a popped key, successful or not. `None` if the key was not in flight: this is a bug of the
    /// caller and changes nothing.
    pub fn done(&mut self, key: &K, now: Duration) -> Option<Done> {
        self.advance(now);
        let started = self.in_flight.remove(key)?;
        if let Some(pending) = self.pending.remove(key) {
            self.file(key.clone(), pending, self.now);
        }
        Some(Done {
            worked: self.now.saturating_sub(started),
        })
    }

    /// Time from `now` until [`Queue::pop`] returns a key if nothing else happens: zero if one is ready, `None` if
    /// no key is ready or delayed.
    pub fn next_wake(&self, now: Duration) -> Option<Duration> {
        if self.ready.len() > 0 {
            return Some(Duration::ZERO);
        }
        self.delayed
            .next_due()
            .map(|due| due.saturating_sub(now.max(self.now)))
    }

    /// Ready keys as of the latest `now`: `workqueue_depth`.
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether no key was ready at the latest `now`.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Delayed keys; those in flight are not counted.
    pub fn delayed(&self) -> usize {
        self.delayed.len()
    }

    /// Totals since the queue was created.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Keys in flight and their durations.
    pub fn unfinished(&self, now: Duration) -> Unfinished {
        let now = now.max(self.now);
        let worked = || {
            self.in_flight
                .values()
                .map(|started| now.saturating_sub(*started))
        };
        Unfinished {
            count: self.in_flight.len(),
            total: worked().fold(Duration::ZERO, Duration::saturating_add),
            longest: worked().max().unwrap_or_default(),
        }
    }

    fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
        while let Some(key) = self.delayed.pop_due(self.now) {
            if let Some(pending) = self.pending.remove(&key) {
                let at = pending.due;
                self.file(key, pending, at);
            }
        }
        self.windows.close(self.now);
    }

    /// Merges a push into the key's pending work, if any.
    fn schedule(&mut self, key: K, priority: Priority, due: Duration, window: Option<Duration>) {
        let Some(pending) = self.pending.get_mut(&key) else {
            return self.file(
                key,
                Pending {
                    priority,
                    due,
                    window,
                    place: Place::Held,
                },
                self.now,
            );
        };
        pending.window = pending.window.max(window);
        let merged = (pending.priority.max(priority), pending.due.min(due));
        if merged == (pending.priority, pending.due) {
            return;
        }
        let before = pending.clone();
        (pending.priority, pending.due) = merged;
        let after = pending.clone();
        match before.place {
            Place::Held => {}
            Place::Delayed(arrival) => {
                self.delayed.remove(before.due, arrival, key.clone());
                self.file(key, after, self.now);
            }
            // Only the priority has changed: the key moves to the other lane and keeps its arrival number.
            Place::Ready(arrival) => {
                let namespace = (self.namespace_of)(&key);
                self.ready.remove(before.priority, namespace, arrival);
                self.ready.push(after.priority, namespace, arrival, key.clone());
            }
        }
    }

    /// Stores pending work by its state. Work that is due became ready at `at`, which is earlier than now if the driver
    /// called late.
    fn file(&mut self, key: K, mut pending: Pending, at: Duration) {
        let arrival = self.next_arrival;
        self.next_arrival = arrival.saturating_add(1);
        if self.in_flight.contains_key(&key) {
            pending.place = Place::Held;
        } else if pending.due > self.now {
            pending.place = Place::Delayed(arrival);
            self.delayed.insert(pending.due, arrival, key.clone());
        } else {
            pending.place = Place::Ready(arrival);
            self.counters.adds = self.counters.adds.saturating_add(1);
            if let Some(window) = pending.window {
                self.windows.open(&key, at.saturating_add(window));
            }
            self.ready
                .push(pending.priority, (self.namespace_of)(&key), arrival, key.clone());
        }
        self.pending.insert(key, pending);
    }
}
