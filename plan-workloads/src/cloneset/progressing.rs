//! The `Progressing` condition: does the rollout get anywhere, within the deadline?
//!
//! The clock starts when there is something to do: a new update revision, more replicas, a partition that moved, a
//! rollout resumed. It starts anew whenever more updated pods are ready.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::cloneset::{CloneSet, CloneSetStatus, Condition};
use kruise_api::names::conditions::{
    CLONESET_AVAILABLE, CLONESET_PAUSED, CLONESET_UPDATED, DEADLINE_EXCEEDED, PARTITION_AVAILABLE,
    PROGRESSING,
};

/// A deadline that means none.
const NEVER: i32 = i32::MAX;

/// What became of the condition.
#[derive(Default)]
pub(super) struct Progress {
    /// When to look again.
    pub(super) again: Option<Duration>,
    /// The deadline has passed since the last look: the condition's message.
    pub(super) exceeded: Option<String>,
}

/// Sets, renews or removes the condition in `status`. `held_by` says what a late rollout waits for.
pub(super) fn progressing(
    set: &CloneSet,
    status: &mut CloneSetStatus,
    held_by: &dyn Fn() -> String,
    now: Timestamp,
) -> Progress {
    let Some(deadline) = set
        .spec
        .progress_deadline_seconds
        .filter(|&deadline| deadline != NEVER)
    else {
        status
            .conditions
            .retain(|condition| condition.kind != PROGRESSING);
        return Progress::default();
    };
    let before = status
        .conditions
        .iter()
        .find(|condition| condition.kind == PROGRESSING)
        .cloned();
    let moved = set.status.update_revision != status.update_revision
        || status.updated_ready_replicas > set.status.updated_ready_replicas;
    // Under any other reason nothing was to be done, and no clock ran.
    let running =
        |before: &&Condition| [CLONESET_UPDATED, DEADLINE_EXCEEDED].contains(&before.reason.as_str());
    let started = match before.as_ref().filter(running) {
        Some(before) if !moved => before.last_update_time.unwrap_or(now),
        _ => now,
    };
    let due = started
        .saturating_add(SignedDuration::from_secs(i64::from(deadline.max(0))))
        .unwrap_or(Timestamp::MAX);
    let (verdict, reason, mut message) = verdict(set, status, before.as_ref().filter(|_| !moved), now > due);
    let same = before
        .as_ref()
        .is_some_and(|before| before.status == verdict && before.reason == reason);
    let exceeded = reason == DEADLINE_EXCEEDED && !same;
    if exceeded {
        let held_by = held_by();
        let comma = if held_by.is_empty() { "" } else { "; " };
        message = format!("{message}{comma}{held_by}");
    }
    let told = exceeded.then(|| message.clone());
    if !same || moved {
        let kept = before.as_ref().filter(|before| before.status == verdict);
        let condition = Condition {
            kind: PROGRESSING.into(),
            status: verdict.into(),
            last_update_time: Some(now),
            last_transition_time: kept.map_or(Some(now), |before| before.last_transition_time),
            reason: reason.into(),
            message,
        };
        match status
            .conditions
            .iter_mut()
            .find(|condition| condition.kind == PROGRESSING)
        {
            Some(slot) => *slot = condition,
            None => status.conditions.push(condition),
        }
    }
    let again = (reason == CLONESET_UPDATED).then(|| {
        let left = due.duration_since(now).max(SignedDuration::ZERO).unsigned_abs();
        left + Duration::from_secs(1)
    });
    Progress {
        again,
        exceeded: told,
    }
}

/// Is something left to do that nobody holds on purpose? Under `OnDelete` old pods that serve wait for whoever deletes them.
pub(super) fn is_unfinished(set: &CloneSet, status: &CloneSetStatus) -> bool {
    let replicas = set.spec.replicas.unwrap_or(1);
    let serves = [status.replicas, status.available_replicas] == [replicas; 2];
    let by_hand = set.spec.update_strategy.kind == "OnDelete" && serves;
    !by_hand && resting(set, status).is_none()
}

/// Reason and message where nothing is to be done.
fn resting(set: &CloneSet, status: &CloneSetStatus) -> Option<(&'static str, &'static str)> {
    let replicas = set.spec.replicas.unwrap_or(1);
    let all = [
        status.replicas,
        status.updated_replicas,
        status.updated_available_replicas,
    ];
    let paused = set
        .spec
        .update_strategy
        .rolling_update
        .as_ref()
        .is_some_and(|rolling| rolling.paused);
    let expected = status.expected_updated_replicas;
    if status.current_revision == status.update_revision && all.iter().all(|count| *count == replicas) {
        Some((CLONESET_AVAILABLE, "CloneSet is available"))
    } else if paused {
        Some((CLONESET_PAUSED, "CloneSet is paused"))
    } else if expected < replicas && expected <= status.updated_available_replicas {
        Some((
            PARTITION_AVAILABLE,
            "CloneSet has been paused due to partition ready",
        ))
    } else {
        None
    }
}

fn verdict(
    set: &CloneSet,
    status: &CloneSetStatus,
    before: Option<&Condition>,
    late: bool,
) -> (&'static str, &'static str, String) {
    let timed_out = before.is_some_and(|before| before.reason == DEADLINE_EXCEEDED) || late;
    if let Some((reason, message)) = resting(set, status) {
        ("True", reason, message.into())
    } else if timed_out {
        let message = format!(
            "CloneSet revision {} has timed out progressing",
            status.update_revision
        );
        ("False", DEADLINE_EXCEEDED, message)
    } else {
        ("True", CLONESET_UPDATED, "CloneSet is progressing".into())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kruise_api::cloneset::{CloneSet, CloneSetStatus};

    use super::progressing;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn set(deadline: Option<i32>) -> CloneSet {
        let mut set = CloneSet::default();
        set.spec.replicas = Some(3);
        set.spec.progress_deadline_seconds = deadline;
        set.status.update_revision = "web-b".into();
        set.status.current_revision = "web-a".into();
        set
    }

    fn status(set: &CloneSet, updated_ready: i32) -> CloneSetStatus {
        CloneSetStatus {
            updated_ready_replicas: updated_ready,
            expected_updated_replicas: 3,
            replicas: 3,
            ..set.status.clone()
        }
    }

    /// Runs one look at `second`, stores its outcome, and returns the reason.
    fn look(set: &mut CloneSet, updated_ready: i32, second: i64) -> String {
        let mut status = status(set, updated_ready);
        progressing(set, &mut status, &String::new, at(second));
        set.status = status;
        set.status
            .conditions
            .first()
            .map(|condition| condition.reason.clone())
            .unwrap_or_default()
    }

    #[test]
    fn without_a_deadline_or_with_the_largest_one_there_is_no_condition() {
        for deadline in [None, Some(i32::MAX)] {
            assert_eq!(look(&mut set(deadline), 0, 0), "");
        }
    }

    #[test]
    fn taking_the_deadline_back_removes_the_condition() {
        let mut set = set(Some(10));
        assert_eq!(look(&mut set, 0, 0), "CloneSetUpdated");
        set.spec.progress_deadline_seconds = None;
        assert_eq!(look(&mut set, 0, 1), "");
    }

    #[test]
    fn progress_restarts_the_clock_and_its_absence_exceeds_the_deadline() {
        let mut set = set(Some(10));
        assert_eq!(look(&mut set, 0, 0), "CloneSetUpdated");
        assert_eq!(look(&mut set, 1, 9), "CloneSetUpdated");
        assert_eq!(look(&mut set, 1, 18), "CloneSetUpdated");
        assert_eq!(look(&mut set, 1, 20), "ProgressDeadlineExceeded");
        assert_eq!(look(&mut set, 1, 21), "ProgressDeadlineExceeded");
    }

    #[test]
    fn a_new_revision_or_new_progress_ends_an_exceeded_deadline() {
        let mut set = set(Some(10));
        look(&mut set, 0, 0);
        assert_eq!(look(&mut set, 0, 30), "ProgressDeadlineExceeded");
        assert_eq!(look(&mut set, 1, 31), "CloneSetUpdated");
        assert_eq!(look(&mut set, 1, 60), "ProgressDeadlineExceeded");
        let mut status = status(&set, 1);
        status.update_revision = "web-c".into();
        progressing(&set, &mut status, &String::new, at(61));
        assert_eq!(status.conditions[0].reason, "CloneSetUpdated");
    }
}
