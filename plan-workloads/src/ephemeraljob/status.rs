//! What the job reports.

use jiff::Timestamp;
use kruise_api::{
    ephemeraljob::{EphemeralJob, EphemeralJobStatus},
    names::conditions::{
        EPHEMERAL_CREATE_FAILED, EPHEMERAL_DEADLINE, EPHEMERAL_ERROR, EPHEMERAL_FAILED,
        EPHEMERAL_INITIALIZED, EPHEMERAL_MATCH_EMPTY, EPHEMERAL_MATCHED_EMPTY, EPHEMERAL_SUCCEEDED, ERROR,
    },
};
use kruise_plan_kit::{EventNote, Owner, Plan, Urgency, events as reasons, jobs, status_patch};

use super::{
    course::Course,
    events,
    targets::{Counts, Targets},
};

/// Phases.
pub(super) mod phase {
    pub(crate) const WAITING: &str = "Waiting";
    pub(crate) const RUNNING: &str = "Running";
    pub(crate) const SUCCEEDED: &str = "Succeeded";
    pub(crate) const FAILED: &str = "Failed";
    pub(crate) const PAUSED: &str = "Paused";
    pub(crate) const ERROR: &str = "Error";
    pub(crate) const UNKNOWN: &str = "Unknown";
}

/// Adds the status and the events of this course to the plan.
pub(super) fn report(
    (job, owner): (&EphemeralJob, &Owner<'_>),
    (targets, counts): (&Targets<'_>, Counts),
    course: Course,
    plan: &mut Plan,
    now: Timestamp,
) {
    if let Course::Ended(_) = course {
        return;
    }
    let before = &job.status;
    let mut status = before.clone();
    status.start_time = Some(before.start_time.unwrap_or(jobs::stored(now)));
    status.matches = counts.matches;
    (status.running, status.waiting) = (counts.running, counts.waiting);
    (status.succeeded, status.failed) = (counts.succeeded, counts.failed);
    status.phase = phase(counts, course).into();
    conditions(&mut status, job, counts, course, now);
    match course {
        Course::Done => plan.events.push(events::done(targets, counts)),
        Course::Late => {
            let event = EventNote::new(&reasons::DEADLINE_EXCEEDED, events::late(&job.metadata));
            plan.events.push(event);
        }
        _ => {}
    }
    if matches!(course, Course::Done | Course::Late) {
        status.completion_time = Some(jobs::stored(now));
    }
    let urgency = Urgency {
        members: &["phase", "conditions"],
        settled: false,
    };
    let target = owner.target(kruise_api::ephemeraljob::RESOURCE, owner.name);
    let before = (!before.phase.is_empty()).then_some(before);
    plan.status = status_patch(target, &job.metadata.resource_version, before, &status, urgency);
}

fn phase(counts: Counts, course: Course) -> &'static str {
    match course {
        Course::Done if counts.failed == 0 => phase::SUCCEEDED,
        Course::Done | Course::Late => phase::FAILED,
        Course::Paused => phase::PAUSED,
        Course::Empty => phase::ERROR,
        Course::Runs | Course::Ended(_) if counts.matches == 0 => phase::WAITING,
        Course::Runs | Course::Ended(_) if counts.running > 0 => phase::RUNNING,
        Course::Runs | Course::Ended(_) if counts.waiting == counts.matches => phase::WAITING,
        Course::Runs | Course::Ended(_) => phase::UNKNOWN,
    }
}

fn conditions(
    status: &mut EphemeralJobStatus,
    job: &EphemeralJob,
    counts: Counts,
    course: Course,
    now: Timestamp,
) {
    let all = &mut status.conditions;
    if all.is_empty() {
        jobs::set(all, EPHEMERAL_INITIALIZED, ("True", ""), String::new(), now);
    }
    let mut say = |kind: &str, holds: bool, reason: &str, message: String| {
        if holds {
            jobs::set(all, kind, ("True", reason), message, now);
        } else {
            jobs::remove(all, kind);
        }
    };
    let is_empty = counts.matches == 0;
    let no_pods = events::NO_PODS.to_owned();
    say(EPHEMERAL_MATCHED_EMPTY, is_empty, EPHEMERAL_MATCH_EMPTY, no_pods);
    let error = events::NO_CONTAINERS.to_owned();
    say(EPHEMERAL_ERROR, course == Course::Empty, ERROR, error);
    let succeeds = course == Course::Done && counts.failed == 0;
    let success = events::SUCCEEDED.to_owned();
    say(EPHEMERAL_SUCCEEDED, succeeds, EPHEMERAL_SUCCEEDED, success);
    let (reason, message) = if course == Course::Late {
        (EPHEMERAL_DEADLINE, events::late(&job.metadata))
    } else {
        (EPHEMERAL_CREATE_FAILED, events::failed(&job.metadata))
    };
    let fails = course == Course::Late || counts.failed > 0;
    say(EPHEMERAL_FAILED, fails, reason, message);
}
