//! What the `Progressing` condition of a CloneSet depends on.

use jiff::Timestamp;
use kruise_api::{
    cloneset::{CloneSet, CloneSetStatus},
    names::conditions::{CLONESET_AVAILABLE, CLONESET_PAUSED, CLONESET_UPDATED, PARTITION_AVAILABLE},
};
use kruise_plan_kit::rollout::progressing::{self, Progress, Report};

/// Sets, renews or removes the condition in `status`. `held_by` describes what a late rollout waits for.
pub(super) fn progressing(
    set: &CloneSet,
    status: &mut CloneSetStatus,
    held_by: &dyn Fn() -> String,
    now: Timestamp,
) -> Progress {
    let report = Report {
        kind: "CloneSet",
        revision: &status.update_revision,
        deadline: progressing::deadline(set.spec.progress_deadline_seconds),
        moved: set.status.update_revision != status.update_revision
            || status.updated_ready_replicas > set.status.updated_ready_replicas,
        resting: resting(set, status),
        working: CLONESET_UPDATED,
    };
    progressing::progressing(report, &mut status.conditions, held_by, now)
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
    let rolling = set.spec.update_strategy.rolling_update.as_ref();
    let paused = rolling.is_some_and(|rolling| rolling.paused);
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

    /// Reports at `second`, stores the outcome, and returns the reason.
    fn report(set: &mut CloneSet, updated_ready: i32, second: i64) -> String {
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
            assert_eq!(report(&mut set(deadline), 0, 0), "");
        }
    }

    #[test]
    fn taking_the_deadline_back_removes_the_condition() {
        let mut set = set(Some(10));
        assert_eq!(report(&mut set, 0, 0), "CloneSetUpdated");
        set.spec.progress_deadline_seconds = None;
        assert_eq!(report(&mut set, 0, 1), "");
    }

    #[test]
    fn progress_restarts_the_clock_and_its_absence_exceeds_the_deadline() {
        let mut set = set(Some(10));
        assert_eq!(report(&mut set, 0, 0), "CloneSetUpdated");
        assert_eq!(report(&mut set, 1, 9), "CloneSetUpdated");
        assert_eq!(report(&mut set, 1, 18), "CloneSetUpdated");
        assert_eq!(report(&mut set, 1, 20), "ProgressDeadlineExceeded");
        assert_eq!(report(&mut set, 1, 21), "ProgressDeadlineExceeded");
    }

    #[test]
    fn a_new_revision_or_new_progress_ends_an_exceeded_deadline() {
        let mut set = set(Some(10));
        report(&mut set, 0, 0);
        assert_eq!(report(&mut set, 0, 30), "ProgressDeadlineExceeded");
        assert_eq!(report(&mut set, 1, 31), "CloneSetUpdated");
        assert_eq!(report(&mut set, 1, 60), "ProgressDeadlineExceeded");
        let mut status = status(&set, 1);
        status.update_revision = "web-c".into();
        progressing(&set, &mut status, &String::new, at(61));
        assert_eq!(status.conditions[0].reason, "CloneSetUpdated");
    }
}
