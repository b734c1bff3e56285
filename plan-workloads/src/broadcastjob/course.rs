//! What becomes of the job: it is paused, fails, completes, runs, or has ended before.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::{
    broadcastjob::{BroadcastJob, BroadcastJobSpec, BroadcastJobStatus},
    names::conditions::{JOB_PAUSED, JOB_STOPPED, PAUSED_BY_USER, RESUMED},
};
use kruise_plan_kit::{injected::is_injected, jobs};

use super::places::{Counts, Places};

/// Phases.
pub(super) mod phase {
    pub(crate) const RUNNING: &str = "running";
    pub(crate) const PAUSED: &str = "paused";
    pub(crate) const COMPLETED: &str = "completed";
    pub(crate) const FAILED: &str = "failed";
}

/// What becomes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// It had ended before.
    Ended,
    /// It creates no pods.
    Paused(Pause),
    /// It fails now.
    Fails(Failure),
    /// It completes now.
    Completes,
    /// It runs.
    Runs,
}

/// Who paused the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// `spec.paused`.
    Specified,
    /// A failed pod. True: now, and not before.
    Failure(bool),
}

/// Why a job fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A pod failed.
    Fast,
    /// The deadline has come.
    Deadline,
}

/// What becomes of the job.
pub(super) fn course(job: &BroadcastJob, places: &Places<'_>, counts: Counts, now: Timestamp) -> Course {
    let (spec, before) = (&job.spec, &job.status);
    if has_ended(before) && !is_reopened(spec, before) {
        return Course::Ended;
    }
    if spec.paused {
        return Course::Paused(Pause::Specified);
    }
    let is_paused = before.phase == phase::PAUSED;
    let policy = &*spec.failure_policy.kind;
    if policy == "Pause" && counts.failed > 0 && !is_injected("FailedPodPausesNothing") {
        if is_paused && reason(before) != Some(PAUSED_BY_USER) {
            return Course::Paused(Pause::Failure(false));
        }
        // What had failed when the user let the job go on pauses it no more.
        let is_accepted = is_paused || (reason(before) == Some(RESUMED) && counts.failed <= before.failed);
        if !is_accepted {
            return Course::Paused(Pause::Failure(true));
        }
    }
    let fails_fast = matches!(policy, "FailFast" | "") && !is_injected("FailedPodEndsNothing");
    if counts.failed > 0 && fails_fast {
        return Course::Fails(Failure::Fast);
    }
    let policy = &spec.completion_policy;
    if !policy.is_never() {
        let start = before.start_time.unwrap_or(jobs::stored(now));
        let seconds = policy.active_deadline_seconds.map(|seconds| {
            let early = if is_injected("DeadlineEarly") { 5 } else { 0 };
            seconds.saturating_sub(early)
        });
        if seconds.is_some_and(|seconds| jobs::left(start, seconds, now).is_none()) {
            return Course::Fails(Failure::Deadline);
        }
        if places.are_done() {
            return Course::Completes;
        }
    }
    Course::Runs
}

/// Does the job go on that was paused, or had ended?
pub(super) fn resumes(before: &BroadcastJobStatus, course: Course) -> bool {
    let rests = matches!(course, Course::Ended | Course::Paused(_));
    !rests && (before.phase == phase::PAUSED || has_ended(before))
}

/// How long it is until the deadline of a job that runs, if it has one.
pub(super) fn until_deadline(job: &BroadcastJob, now: Timestamp) -> Option<Duration> {
    let policy = &job.spec.completion_policy;
    let seconds = policy.active_deadline_seconds.filter(|_| !policy.is_never())?;
    jobs::left(job.status.start_time.unwrap_or(jobs::stored(now)), seconds, now)
}

/// Does what still runs of an ended job stop? That of one which OpenKruise ended does not.
pub(super) fn stops_pods(before: &BroadcastJobStatus) -> bool {
    jobs::get(&before.conditions, JOB_STOPPED).is_some()
}

/// Is the stored status that of a job that has ended?
fn has_ended(status: &BroadcastJobStatus) -> bool {
    [phase::COMPLETED, phase::FAILED].contains(&&*status.phase) || jobs::has_ended(&status.conditions)
}

/// Does a job that has ended go on? One of type `Never` does: it completes never, and fails only while its policy
/// says so.
fn is_reopened(spec: &BroadcastJobSpec, before: &BroadcastJobStatus) -> bool {
    let fails = matches!(&*spec.failure_policy.kind, "FailFast" | "");
    spec.completion_policy.is_never() && (before.phase != phase::FAILED || !fails)
}

/// Who paused the job, or let it go on.
fn reason(before: &BroadcastJobStatus) -> Option<&str> {
    jobs::get(&before.conditions, JOB_PAUSED).map(|condition| &*condition.reason)
}
