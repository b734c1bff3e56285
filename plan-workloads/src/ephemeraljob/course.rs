//! What becomes of the job.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::ephemeraljob::EphemeralJob;
use kruise_plan_kit::jobs;

use super::targets::Counts;

/// What becomes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// It had ended before, at this time.
    Ended(Timestamp),
    /// It ends now: each of its pods has succeeded or failed.
    Done,
    /// It ends now: its deadline has come.
    Late,
    /// It adds no containers.
    Paused,
    /// It has no containers.
    Empty,
    /// It runs.
    Runs,
}

pub(super) fn course(job: &EphemeralJob, counts: Counts, now: Timestamp) -> Course {
    let (spec, status) = (&job.spec, &job.status);
    if let Some(ended) = status.completion_time {
        return Course::Ended(ended);
    }
    if counts.are_done() {
        return Course::Done;
    }
    if spec.paused {
        return Course::Paused;
    }
    if spec.template.ephemeral_containers.is_empty() {
        return Course::Empty;
    }
    if spec.active_deadline_seconds.is_some() && until_deadline(job, now).is_none() {
        return Course::Late;
    }
    Course::Runs
}

/// How long it is until the deadline, if the job has one that is to come.
pub(super) fn until_deadline(job: &EphemeralJob, now: Timestamp) -> Option<Duration> {
    let start = job.status.start_time.unwrap_or(jobs::stored(now));
    jobs::left(start, job.spec.active_deadline_seconds?, now)
}
