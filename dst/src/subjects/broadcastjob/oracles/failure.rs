//! *"A failed pod ends the job, pauses it, or does neither, as the failure policy says. A job fails for a reason, and not before
//! its deadline."*

use jiff::{SignedDuration, Timestamp};

use super::known::{believed, failure_policy, has_stored_end, is_never, known_failure, may_have_failed};
use crate::engine::oracles::{Mirror, Object, Violation, Write};
use crate::subjects::nodes::created;

/// Judges the creation of a pod.
pub fn judge_creation(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let new = created(write, mirror)?;
    let jobs = believed(write, mirror, new.owner());
    let newest = jobs.last()?;
    let failed = known_failure(newest, write, mirror)?;
    let policy = failure_policy(newest);
    let is_held = jobs.iter().all(|job| failure_policy(job) == policy && holds(job));
    is_held.then(|| Violation {
        oracle: oracle(policy),
        what: format!(
            "{} created {}: {policy}, and {} has failed",
            write.process, new.name, failed.name
        ),
    })
}

/// Judges a status, written for this version of the job.
pub fn judge_status(
    (before, new): (&Object, &Object),
    write: &Write<'_>,
    mirror: &Mirror,
) -> Option<Violation> {
    let violation = |oracle, why: &str| {
        let phase = &new.value()["status"]["phase"];
        let what = format!("{} reported {phase}: {why}", write.process);
        Some(Violation { oracle, what })
    };
    let phase = &new.value()["status"]["phase"];
    if (phase == "running" || phase == "completed")
        && holds(before)
        && let Some(failed) = known_failure(before, write, mirror)
    {
        return violation(
            oracle(failure_policy(before)),
            &format!("{} has failed", failed.name),
        );
    }
    if phase != "failed" || has_stored_end(before) {
        return None;
    }
    if failure_policy(before) == "FailFast" && may_have_failed(before, write, mirror) {
        return None;
    }
    match deadline(before, new) {
        Some(deadline) if write.sender_now() >= deadline => None,
        Some(deadline) => violation("no job fails before its deadline", &format!("that is {deadline}")),
        None => violation("a job fails for a reason", "it has none"),
    }
}

/// Does a failed pod keep a job in this state from creating pods? One that a user let go on in spite of it is not kept.
fn holds(job: &Object) -> bool {
    let conditions = job.value()["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let paused = conditions.find(|one| one["type"] == "Paused");
    let is_accepted = paused.is_some_and(|paused| paused["reason"] != "FailedPods");
    let is_paused = job.value()["spec"]["paused"] == true;
    match failure_policy(job) {
        _ if is_paused || has_stored_end(job) || job.is_going() => false,
        "FailFast" => true,
        "Pause" => !is_accepted,
        _ => false,
    }
}

fn oracle(policy: &str) -> &'static str {
    if policy == "Pause" {
        "a failed pod pauses the job"
    } else {
        "a failed pod ends the job"
    }
}

/// When the job fails, if it has a deadline.
fn deadline(before: &Object, new: &Object) -> Option<Timestamp> {
    let seconds = before.value()["spec"]["completionPolicy"]["activeDeadlineSeconds"].as_i64()?;
    let start = [before, new]
        .into_iter()
        .find_map(|job| job.value()["status"]["startTime"].as_str());
    let start: Timestamp = start?.parse().ok()?;
    start
        .checked_add(SignedDuration::from_secs(seconds))
        .ok()
        .filter(|_| !is_never(before))
}
