//! The `Progressing` condition: does the rollout get anywhere, within the deadline?
//!
//! The clock starts when there is something to do: a new update revision, more replicas, a partition that moved, a
//! rollout resumed. It starts anew whenever more updated pods are ready.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    condition::Condition,
    names::conditions::{DEADLINE_EXCEEDED, PROGRESSING},
};

use super::conditions;

/// A deadline that means none.
const NEVER: i32 = i32::MAX;

/// The deadline that a specification sets, if it means one.
pub fn deadline(seconds: Option<i32>) -> Option<i32> {
    seconds.filter(|&seconds| seconds != NEVER)
}

/// What is known of a rollout once its pods are counted.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// Kind of the workload, as messages name it.
    pub kind: &'static str,
    /// The update revision.
    pub revision: &'a str,
    /// Seconds without progress before the condition turns False; `None` means that there is no condition.
    pub deadline: Option<i32>,
    /// Is the revision another one, or are more updated pods ready, than was reported before?
    pub moved: bool,
    /// Reason and message where nothing is to be done.
    pub resting: Option<(&'static str, &'static str)>,
    /// Reason of the condition while something is to be done.
    pub working: &'static str,
}

/// What became of the condition.
#[derive(Default)]
pub struct Progress {
    /// When to plan again.
    pub again: Option<Duration>,
    /// Has the deadline passed without progress? The condition is False.
    pub late: bool,
}

/// Sets, renews or removes the condition. Its messages are those of OpenKruise: what a late rollout waits for is in the
/// condition [`Stalled`](super::stalled).
pub fn progressing(report: Report<'_>, all: &mut Vec<Condition>, now: Timestamp) -> Progress {
    let Some(deadline) = report.deadline else {
        all.retain(|condition| condition.kind != PROGRESSING);
        return Progress::default();
    };
    let (before, moved) = (conditions::get(all, PROGRESSING), report.moved);
    // Under any other reason nothing was to be done, and no clock ran.
    let running = |before: &&Condition| [report.working, DEADLINE_EXCEEDED].contains(&before.reason.as_str());
    let started = match before.filter(running) {
        Some(before) if !moved => before.last_update_time.unwrap_or(now),
        _ => now,
    };
    let due = started
        .saturating_add(SignedDuration::from_secs(i64::from(deadline.max(0))))
        .unwrap_or(Timestamp::MAX);
    let was_late = before.is_some_and(|before| !moved && before.reason == DEADLINE_EXCEEDED);
    let (status, reason, message) = verdict(report, was_late || now > due);
    let same = before.is_some_and(|before| before.status == status && before.reason == reason);
    let mut progress = Progress {
        again: None,
        late: reason == DEADLINE_EXCEEDED,
    };
    if !same || moved {
        conditions::set(all, PROGRESSING, (status, reason), message, now);
    }
    if reason == report.working {
        let left = due.duration_since(now).max(SignedDuration::ZERO).unsigned_abs();
        progress.again = Some(left + Duration::from_secs(1));
    }
    progress
}

fn verdict(report: Report<'_>, late: bool) -> (&'static str, &'static str, String) {
    let Report { kind, revision, .. } = report;
    if let Some((reason, message)) = report.resting {
        ("True", reason, message.into())
    } else if late {
        let message = format!("{kind} revision {revision} has timed out progressing");
        ("False", DEADLINE_EXCEEDED, message)
    } else {
        ("True", report.working, format!("{kind} is progressing"))
    }
}
