//! What is known of the rest of a rollout.

use std::time::Duration;

use jiff::Timestamp;

/// A pod that came to the revision and is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// When its update or its creation began.
    pub began: Timestamp,
    /// From then on, until it was ready.
    pub took: Duration,
    /// Was it ready all the time?
    pub stayed_ready: bool,
    /// Was it updated in place?
    pub in_place: bool,
}

/// The rest of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Pods that are still to be updated.
    pub to_update: usize,
    /// Pods that are updated and not available yet, or being replaced.
    pub under_way: usize,
    /// Of those, pods that are gone or being deleted, and come back updated.
    pub replaced: usize,
    /// Pods that stay on their revision.
    pub kept: usize,
    /// What keeps them, in plain words.
    pub kept_by: &'static str,
    /// Pods that may be updated at one time.
    pub at_once: usize,
    /// What happens.
    pub course: Course,
}

/// What happens to the rest of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// Nothing, for now.
    Held(Held),
    /// It goes on.
    Waves {
        /// How many, that which is under way included.
        count: usize,
        /// How long they take, if that is known.
        pace: Option<Pace>,
    },
}

/// Why nothing can be said about times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The update is paused.
    Paused,
    /// Pods change only when somebody deletes them.
    OnDelete,
    /// Nothing is left but pods that stay on their revision.
    Kept,
    /// No pod may be updated at all.
    NoRoom,
    /// Lifecycle hooks hold so many pods.
    Hooks(usize),
    /// So many pods should have been gone.
    Overstaying(usize),
    /// Nothing is done, for reasons that are those of each pod.
    Waits,
}

/// How long waves take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Until a pod was ready: the median. Zero if it was ready all the time.
    pub took: Duration,
    /// Of so many pods.
    pub of: usize,
    /// From then on, until it was available.
    pub settles: Duration,
    /// Until the first wave has ended, from now on.
    pub first: Duration,
    /// Until the last wave has ended, from now on.
    pub last: Duration,
    /// A pod is under way for so long, which is more than twice as long as others took.
    pub overdue: Option<Duration>,
    /// Comes the end of the pod before on top, which nobody has measured?
    pub end_not_counted: bool,
}
