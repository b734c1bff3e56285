//! *"A failed pod ends the job, pauses it, or does neither, as the failure policy says. A job fails for a reason, and not before
//! its deadline."*

use super::known::{believed, failure_policy, has_stored_end, is_never, known_failure, may_have_failed};
use crate::rules::belief::created;
use crate::rules::prelude::*;

/// Judges the creation of a pod.
pub fn judge_creation(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let new = created(write, mirror)?;
    let jobs = believed(write, mirror, new.owner());
    let newest = jobs.versions.last()?;
    let failed = known_failure(newest, write, mirror)?;
    let policy = failure_policy(newest);
    never!(write, oracle(policy),
        jobs.is(|job| failure_policy(job) == policy && holds(job)) => "{policy}, and {} has failed", failed.name);
    None
}

/// Judges a status, written for this version of the job.
pub fn judge_status(
    (before, new): (&Object, &Object),
    write: &Write<'_>,
    mirror: &Mirror,
) -> Option<Violation> {
    let phase = &new.value()["status"]["phase"];
    let goes_on = (phase == "running" || phase == "completed") && holds(before);
    never!(write, oracle(failure_policy(before)),
        some failed in known_failure(before, write, mirror).filter(|_| goes_on) => "{} has failed", failed.name);
    let ends_it = failure_policy(before) == "FailFast" && may_have_failed(before, write, mirror);
    if phase != "failed" || has_stored_end(before) || ends_it {
        return None;
    }
    let deadline = deadline(before, new);
    never!(write, "a job fails for a reason", deadline.is_none() => "it has none");
    never!(write, "no job fails before its deadline",
        some deadline in deadline.filter(|deadline| write.sender_now() < *deadline) => "that is {deadline}");
    None
}

/// Does a failed pod keep a job in this state from creating pods? One that a user let go on in spite of it is not kept.
fn holds(job: &Object) -> bool {
    let mut conditions = items(&job.value()["status"]["conditions"]);
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
    let seconds = &before.value()["spec"]["completionPolicy"]["activeDeadlineSeconds"];
    let mut starts = [before, new]
        .into_iter()
        .map(|job| &job.value()["status"]["startTime"]);
    after(starts.find(|start| start.is_string())?, seconds).filter(|_| !is_never(before))
}
