//! One tag of an image: how far it is in this round.

use std::time::Duration;

use jiff::Timestamp;

use crate::AttemptId;
use crate::call::{after, earlier, whole_seconds};
use crate::node_image::{Phase, TagSpec, TagStatus};

/// A tag of an image, by their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) image: Box<str>,
    pub(super) tag: Box<str>,
}

/// A tag, from its first attempt to the end of its round.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// What is reported.
    pub(super) status: TagStatus,
    pub(super) step: Step,
    /// When the first attempt began.
    pub(super) started: Option<Timestamp>,
    /// Attempts that failed.
    pub(super) failures: u32,
    /// Since when it was held, without a call to pull since then.
    pub(super) held_since: Option<Timestamp>,
    /// Does it wait for the runtime, for disk space or for a secret?
    pub(super) is_held: bool,
    /// Reads of secrets that failed since the last call to pull.
    pub(super) unreadable: u32,
    /// Is it held because the runtime is away, and was not held before?
    waits_for_runtime: bool,
}

/// What a task does. It has a slot of the limit from its first check to its end, unless it waits for the runtime,
/// for space or for a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It waits for a slot, or for the runtime.
    Queued,
    /// This listing says whether the image is there.
    Checking(u64),
    /// This measurement says whether there is room.
    Measuring(u64),
    /// It waits for room.
    AwaitingSpace,
    ReadingSecrets(AttemptId),
    /// A secret could not be read. The attempt begins again then.
    AwaitingSecrets(Timestamp),
    Pulling(AttemptId),
    /// This listing says which id the image has that was pulled, whose reference this is.
    Confirming {
        listing: u64,
        reference: Box<str>,
    },
    /// The next attempt begins then.
    Paused(Timestamp),
    Finished,
}

/// What is due for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// All of its time is over.
    Deadline,
    /// It has waited too long for the runtime or for space.
    Hold,
    /// The next attempt, or the same one once more.
    Retry,
}

impl Task {
    /// A round that begins.
    pub(super) fn new(spec: &TagSpec) -> Self {
        Self {
            status: TagStatus {
                tag: spec.tag.clone(),
                version: spec.version,
                ..TagStatus::default()
            },
            step: Step::Queued,
            started: None,
            failures: 0,
            held_since: None,
            is_held: false,
            unreadable: 0,
            waits_for_runtime: false,
        }
    }

    /// A round that is over.
    pub(super) fn finished(status: TagStatus) -> Self {
        Self {
            status,
            step: Step::Finished,
            started: None,
            failures: 0,
            held_since: None,
            is_held: false,
            unreadable: 0,
            waits_for_runtime: false,
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.step == Step::Finished
    }

    pub(super) fn has_slot(&self) -> bool {
        let waits = matches!(
            self.step,
            Step::Queued | Step::AwaitingSpace | Step::AwaitingSecrets(_)
        );
        !waits && !self.is_finished()
    }

    /// When all of its time is over.
    pub(super) fn deadline(&self, spec: &TagSpec) -> Option<Timestamp> {
        let limit = Duration::try_from(spec.active_deadline?).unwrap_or_default();
        Some(after(self.started?, limit))
    }

    /// What is due next without an event, and when. A call to pull has a time limit of its own; after it, nothing
    /// can fail.
    pub(super) fn timer(&self, spec: &TagSpec) -> Option<(Timestamp, Due)> {
        let limit = Duration::try_from(spec.timeout).unwrap_or_default();
        let held = self.held_since.filter(|_| self.is_held);
        let held = held.map(|since| (after(since, limit), Due::Hold));
        let retry = match self.step {
            Step::Pulling(_) | Step::Confirming { .. } | Step::Finished => return None,
            Step::Paused(until) | Step::AwaitingSecrets(until) => Some((until, Due::Retry)),
            Step::Queued | Step::AwaitingSpace => held,
            Step::Checking(_) | Step::Measuring(_) | Step::ReadingSecrets(_) => None,
        };
        let deadline = self.deadline(spec).map(|deadline| (deadline, Due::Deadline));
        deadline.into_iter().chain(retry).min()
    }

    /// It gets a slot.
    pub(super) fn start(&mut self, now: Timestamp) {
        self.started.get_or_insert(now);
        let started = self.started.map(whole_seconds);
        self.status.phase = Phase::Pulling;
        self.status.start_time = self.status.start_time.or(started);
        self.release();
    }

    /// Until when it waits for secrets that cannot be read: for as long as an attempt may take, together with what
    /// it was held for before.
    pub(super) fn patience(&self, spec: &TagSpec, now: Timestamp) -> Timestamp {
        let limit = Duration::try_from(spec.timeout).unwrap_or_default();
        after(self.held_since.unwrap_or(now), limit)
    }

    /// It gives its slot back.
    pub(super) fn wait(&mut self, step: Step) {
        self.step = step;
        self.status.phase = Phase::Waiting;
    }

    /// Its round is over.
    pub(super) fn finish(&mut self, phase: Phase, now: Timestamp) {
        self.step = Step::Finished;
        self.status.phase = phase;
        self.status.completion_time = Some(whole_seconds(now));
    }

    /// It waits for this reason. Returns whether that is news.
    pub(super) fn hold(&mut self, reason: &str, now: Timestamp) -> bool {
        self.held_since.get_or_insert(now);
        self.is_held = true;
        let is_new = *self.status.message != *reason;
        if is_new {
            self.status.message = reason.into();
        }
        is_new
    }

    /// It waits for the runtime. Returns whether that is news.
    pub(super) fn await_runtime(&mut self, reason: &str, now: Timestamp) -> bool {
        self.waits_for_runtime |= self.held_since.is_none();
        self.hold(reason, now)
    }

    /// The runtime is there. A wait for a slot is no part of the wait for the runtime. Returns whether that is news.
    pub(super) fn find_runtime(&mut self) -> bool {
        if std::mem::take(&mut self.waits_for_runtime) {
            self.held_since = None;
        }
        self.release()
    }

    /// It need not wait any more. Returns whether that is news.
    pub(super) fn release(&mut self) -> bool {
        self.is_held = false;
        !std::mem::take(&mut self.status.message).is_empty()
    }
}

/// The earliest timer of tasks.
pub(super) fn earliest<'a>(tasks: impl Iterator<Item = (&'a Task, &'a TagSpec)>) -> Option<Timestamp> {
    let times = tasks.filter_map(|(task, spec)| Some(task.timer(spec)?.0));
    times.fold(None, |first, time| earlier(first, Some(time)))
}
