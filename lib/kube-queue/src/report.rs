//! The figures behind the `workqueue_*` metrics.

use std::time::Duration;

use crate::Priority;

/// A key returned by [`Queue::pop`](crate::Queue::pop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Popped<K> {
    /// The key; no other worker gets it until [`Queue::done`](crate::Queue::done).
    pub key: K,
    /// The priority it was queued with.
    pub priority: Priority,
    /// Time since it was due: `workqueue_queue_duration_seconds`.
    pub waited: Duration,
}

/// A finished piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Time since the key was popped: `workqueue_work_duration_seconds`.
    pub worked: Duration,
}

/// Totals since the queue was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Times a key became ready, duplicates not counted: `workqueue_adds_total`.
    pub adds: u64,
    /// Pushes with a delay or rate limit: `workqueue_retries_total`.
    pub retries: u64,
}

/// Keys in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Number of keys.
    pub count: usize,
    /// Sum of their times: `workqueue_unfinished_work_seconds`.
    pub total: Duration,
    /// The longest of them: `workqueue_longest_running_processor_seconds`.
    pub longest: Duration,
}
