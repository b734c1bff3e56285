//! What the `Progressing` condition of a CloneSet depends on.

use jiff::Timestamp;
use kruise_api::{
    cloneset::{CloneSet, CloneSetStatus},
    names::conditions::{CLONESET_AVAILABLE, CLONESET_PAUSED, CLONESET_UPDATED, PARTITION_AVAILABLE},
};
use kruise_plan_kit::{
    lifecycle::State,
    rollout::{
        Pod, Rollout, Stage,
        progressing::{self, Progress, Report},
        stalled,
    },
};

use super::numbers::Limits;

/// Sets, renews or removes the condition in `status`.
pub(super) fn progressing(set: &CloneSet, status: &mut CloneSetStatus, now: Timestamp) -> Progress {
    let report = Report {
        kind: "CloneSet",
        revision: &status.update_revision,
        deadline: progressing::deadline(set.spec.progress_deadline_seconds),
        revised: set.status.update_revision != status.update_revision,
        progressed: status.updated_ready_replicas > set.status.updated_ready_replicas,
        resting: resting(set, status),
        working: CLONESET_UPDATED,
    };
    progressing::progressing(report, &mut status.conditions, now)
}

/// Is something left to roll out or to scale that the specification does not hold? A pod that broke after it was in
/// service is not: counting it is up to `Progressing`.
pub(super) fn is_unfinished(
    set: &CloneSet,
    rollout: &Rollout<'_>,
    limits: Limits,
    status: &CloneSetStatus,
    pods: &[Pod<'_>],
) -> bool {
    if resting(set, status).is_some() {
        return false;
    }
    let replicas = limits.replicas as usize;
    let staying = pods
        .iter()
        .filter(|pod| pod.state != State::PreparingDelete)
        .count();
    let counted = if limits.exclude_preparing_delete {
        staying
    } else {
        pods.len()
    };
    let moves =
        rollout.strategy.held().is_none() && status.updated_replicas < status.expected_updated_replicas;
    moves || counted < replicas || staying > replicas || pods.iter().any(stalled::is_arriving)
}

/// How far the rollout is.
pub(super) fn stage(rollout: &Rollout<'_>, set: &CloneSet, status: &CloneSetStatus) -> Stage {
    Stage::of(
        rollout.strategy.held(),
        (&set.status.update_revision, &status.update_revision),
        status.updated_replicas < status.replicas,
        (resting(set, status), CLONESET_AVAILABLE),
        &status.conditions,
    )
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
        progressing(set, &mut status, at(second));
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
    fn a_deadline_that_was_exceeded_stays_so_whatever_progress_comes() {
        let mut set = set(Some(10));
        report(&mut set, 0, 0);
        assert_eq!(report(&mut set, 0, 30), "ProgressDeadlineExceeded");
        assert_eq!(report(&mut set, 1, 31), "ProgressDeadlineExceeded");
        assert_eq!(report(&mut set, 2, 60), "ProgressDeadlineExceeded");
        let times = |set: &CloneSet| {
            let condition = &set.status.conditions[0];
            (condition.last_update_time, condition.last_transition_time)
        };
        assert_eq!(
            times(&set),
            (Some(at(0)), Some(at(30))),
            "when the clock started, and when it ended"
        );
        let mut status = status(&set, 2);
        status.update_revision = "web-c".into();
        progressing(&set, &mut status, at(61));
        assert_eq!(status.conditions[0].reason, "CloneSetUpdated", "another revision");
    }

    #[test]
    fn a_paused_rollout_rests_and_has_its_whole_deadline_when_it_goes_on() {
        let mut set = set(Some(10));
        report(&mut set, 0, 0);
        assert_eq!(report(&mut set, 0, 30), "ProgressDeadlineExceeded");
        let rolling = |paused| kruise_api::cloneset::RollingUpdate {
            paused,
            ..Default::default()
        };
        set.spec.update_strategy.rolling_update = Some(rolling(true));
        assert_eq!(report(&mut set, 0, 31), "CloneSetPaused");
        set.spec.update_strategy.rolling_update = Some(rolling(false));
        assert_eq!(report(&mut set, 0, 40), "CloneSetUpdated");
        assert_eq!(report(&mut set, 0, 50), "CloneSetUpdated");
        assert_eq!(report(&mut set, 0, 51), "ProgressDeadlineExceeded");
    }

    #[test]
    fn a_deadline_that_is_raised_past_now_is_exceeded_no_more_and_begins_anew() {
        let mut set = set(Some(10));
        report(&mut set, 0, 0);
        assert_eq!(report(&mut set, 0, 30), "ProgressDeadlineExceeded");
        set.spec.progress_deadline_seconds = Some(20);
        assert_eq!(
            report(&mut set, 0, 31),
            "ProgressDeadlineExceeded",
            "not far enough"
        );
        set.spec.progress_deadline_seconds = Some(50);
        assert_eq!(report(&mut set, 0, 32), "CloneSetUpdated");
        assert_eq!(report(&mut set, 0, 82), "CloneSetUpdated");
        assert_eq!(report(&mut set, 0, 83), "ProgressDeadlineExceeded");
        set.spec.progress_deadline_seconds = Some(10);
        assert_eq!(report(&mut set, 0, 84), "ProgressDeadlineExceeded", "lowered");
    }

    #[test]
    fn a_deadline_that_was_exceeded_under_openkruise_stays_so() {
        let mut set = set(Some(10));
        report(&mut set, 0, 0);
        report(&mut set, 0, 30);
        set.status.conditions[0].last_update_time = Some(at(30));
        assert_eq!(report(&mut set, 1, 31), "ProgressDeadlineExceeded");
    }
}
