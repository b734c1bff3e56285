//! The `Progressing` condition: does the rollout get anywhere, within the deadline?
//!
//! The clock starts when there is something to do: a new update revision, more replicas, a partition that moved, a
//! rollout resumed. It starts anew whenever more updated pods are ready.
//!
//! A deadline that has passed stays exceeded, whatever progress comes later, until the rollout rests, another
//! revision is rolled out, or the deadline is raised or removed. What happens meanwhile is in the condition
//! [`Stalled`](super::stalled). So that a raised deadline can be told, `lastUpdateTime` of the condition that is
//! False is when the clock started. OpenKruise stores the time at which the deadline passed, which
//! `lastTransitionTime` has.

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
    /// Is the revision another one than was reported before?
    pub revised: bool,
    /// Are more updated pods ready than were reported before?
    pub progressed: bool,
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
    /// Has the deadline passed? The condition is False.
    pub late: Option<Late>,
}

/// A rollout whose deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Since now, and nothing has moved until now.
    Now,
    /// Since earlier.
    Still {
        /// Are more updated pods ready than were reported before?
        progressed: bool,
    },
}

/// Sets, renews or removes the condition. Its messages are those of OpenKruise: what a late rollout waits for is in the
/// condition [`Stalled`](super::stalled).
pub fn progressing(report: Report<'_>, all: &mut Vec<Condition>, now: Timestamp) -> Progress {
    let Some(deadline) = report.deadline else {
        all.retain(|condition| condition.kind != PROGRESSING);
        return Progress::default();
    };
    let before = conditions::get(all, PROGRESSING).filter(|_| !report.revised);
    let was_late = before.is_some_and(|before| before.reason == DEADLINE_EXCEEDED);
    let restarts = report.revised || (report.progressed && !was_late);
    // Under any other reason nothing was to be done, and no clock ran.
    let running = |before: &&Condition| was_late || before.reason == report.working;
    let mut started = match before.filter(running) {
        Some(before) if !restarts => before.last_update_time.unwrap_or(now),
        _ => now,
    };
    let due = |started: Timestamp| {
        started
            .saturating_add(SignedDuration::from_secs(i64::from(deadline.max(0))))
            .unwrap_or(Timestamp::MAX)
    };
    let stays_late = was_late && before.is_some_and(|before| !tells_its_start(before));
    let (status, reason, message) = verdict(report, stays_late || now > due(started));
    if was_late && reason == report.working {
        // The deadline was raised. What has moved since it passed is not known any more.
        started = now;
    }
    let same = before.is_some_and(|before| before.status == status && before.reason == reason);
    let late = if was_late {
        Late::Still {
            progressed: report.progressed,
        }
    } else {
        Late::Now
    };
    let mut progress = Progress {
        again: None,
        late: (reason == DEADLINE_EXCEEDED).then_some(late),
    };
    if !same || restarts {
        conditions::set(all, PROGRESSING, (status, reason), message, now);
        if [report.working, DEADLINE_EXCEEDED].contains(&reason) {
            let mut all = all.iter_mut();
            if let Some(condition) = all.find(|condition| condition.kind == PROGRESSING) {
                condition.last_update_time = Some(started);
            }
        }
    }
    if reason == report.working {
        let left = due(started)
            .duration_since(now)
            .max(SignedDuration::ZERO)
            .unsigned_abs();
        progress.again = Some(left + Duration::from_secs(1));
    }
    progress
}

/// Does the condition of a deadline that has passed say when its clock started? That of OpenKruise does not.
fn tells_its_start(condition: &Condition) -> bool {
    condition.last_update_time < condition.last_transition_time
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
