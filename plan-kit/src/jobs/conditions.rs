//! Conditions of jobs.

use jiff::Timestamp;
use kruise_api::{
    condition::JobCondition,
    names::conditions::{JOB_COMPLETE, JOB_FAILED},
};

use super::stored;

/// The condition of this type.
pub fn get<'c>(all: &'c [JobCondition], kind: &str) -> Option<&'c JobCondition> {
    all.iter().find(|condition| condition.kind == kind)
}

/// Do the conditions say that the job has ended, well or badly?
pub fn has_ended(all: &[JobCondition]) -> bool {
    let mut ended = all.iter().filter(|condition| condition.is_true());
    ended.any(|condition| [JOB_COMPLETE, JOB_FAILED].contains(&&*condition.kind))
}

/// Sets the condition of a type. One that says the same stays as it is.
pub fn set(
    all: &mut Vec<JobCondition>,
    kind: &str,
    (status, reason): (&str, &str),
    message: String,
    now: Timestamp,
) {
    let now = Some(stored(now));
    let slot = all.iter_mut().find(|condition| condition.kind == kind);
    let before = slot.as_ref().filter(|before| before.status == status);
    if before.is_some_and(|before| before.reason == reason && before.message == message) {
        return;
    }
    let condition = JobCondition {
        kind: kind.into(),
        status: status.into(),
        last_probe_time: now,
        last_transition_time: before.map_or(now, |before| before.last_transition_time),
        reason: reason.into(),
        message,
    };
    match slot {
        Some(slot) => *slot = condition,
        None => all.push(condition),
    }
}

/// Removes the condition of a type.
pub fn remove(all: &mut Vec<JobCondition>, kind: &str) {
    all.retain(|condition| condition.kind != kind);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_times_until_it_says_something_else() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut all = Vec::new();
        let mut set = |status, reason, message: &str, second| {
            super::set(&mut all, "Paused", (status, reason), message.into(), at(second));
            let one = &all[0];
            (
                one.last_probe_time.unwrap().as_second(),
                one.last_transition_time.unwrap().as_second(),
            )
        };
        assert_eq!(set("True", "FailedPods", "1", 1), (1, 1));
        assert_eq!(set("True", "FailedPods", "1", 2), (1, 1));
        assert_eq!(set("True", "FailedPods", "2", 3), (3, 1));
        assert_eq!(set("False", "Resumed", "2", 4), (4, 4));
        remove(&mut all, "Paused");
        assert!(all.is_empty());
    }

    #[test]
    fn a_job_has_ended_when_a_condition_that_is_true_says_so() {
        let condition = |kind: &str, status: &str| JobCondition {
            kind: kind.into(),
            status: status.into(),
            ..JobCondition::default()
        };
        for (kind, status, ended) in [
            ("Complete", "True", true),
            ("Failed", "True", true),
            ("Failed", "False", false),
            ("Paused", "True", false),
        ] {
            assert_eq!(has_ended(&[condition(kind, status)]), ended, "{kind} {status}");
        }
    }
}
