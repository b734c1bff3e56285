//! What the job reports.

use jiff::Timestamp;
use kruise_api::{
    broadcastjob::{BroadcastJob, BroadcastJobStatus},
    names::conditions::{
        JOB_COMPLETE, JOB_FAILED, JOB_PAUSED, JOB_STOPPED, PAUSED_BY_FAILURE, PAUSED_BY_USER, RESUMED,
    },
};
use kruise_plan_kit::{EventNote, Owner, Plan, Urgency, jobs, status_patch};
use kruise_views::{PodView, Truth};

use super::reasons;
use super::{
    course::{Course, Failure, Pause, phase, resumes, stops_pods},
    events,
    places::{Counts, Places, State},
};

/// Adds the status and the events of this course to the plan.
pub(super) fn report(
    (job, owner): (&BroadcastJob, &Owner<'_>),
    (places, counts): (&Places<'_>, Counts),
    course: Course,
    plan: &mut Plan,
    now: Timestamp,
) {
    let before = &job.status;
    let mut status = before.clone();
    status.active = counts.active;
    if course != Course::Ended {
        status.start_time = Some(before.start_time.unwrap_or(jobs::stored(now)));
        (status.succeeded, status.failed, status.desired) = (counts.succeeded, counts.failed, counts.desired);
        plan.events
            .extend(places.all.iter().filter_map(events::duplicate));
        plan.events.extend(unscheduled(places));
    }
    if resumes(before, course) {
        plan.events.push(events::continues());
    }
    // One of type `Never` may be paused after its end.
    if course != Course::Ended {
        status.completion_time = None;
        for kind in [JOB_COMPLETE, JOB_FAILED, JOB_STOPPED] {
            jobs::remove(&mut status.conditions, kind);
        }
    }
    set_phase(&mut status, job, course, counts, now);
    let ends = matches!(course, Course::Fails(_) | Course::Completes);
    if ends || (course == Course::Ended && stops_pods(before)) {
        let (stopped, [reason, message]) = events::stopped(places.any_runs());
        let conditions = &mut status.conditions;
        jobs::set(conditions, JOB_STOPPED, (stopped, reason), message.into(), now);
    }
    announce(plan, job, &status, course, counts);
    let urgency = Urgency {
        members: &["phase", "conditions"],
        settled: false,
    };
    let target = owner.target(kruise_api::broadcastjob::RESOURCE, owner.name);
    let before = (!before.phase.is_empty()).then_some(before);
    plan.status = status_patch(target, &job.metadata.resource_version, before, &status, urgency);
}

fn set_phase(
    status: &mut BroadcastJobStatus,
    job: &BroadcastJob,
    course: Course,
    counts: Counts,
    now: Timestamp,
) {
    let conditions = &mut status.conditions;
    let mut end = |phase: &str, kind: &str, message: String| {
        jobs::remove(conditions, JOB_PAUSED);
        jobs::set(conditions, kind, ("True", kind), message, now);
        status.completion_time = Some(jobs::stored(now));
        status.phase = phase.into();
    };
    match course {
        Course::Ended => {}
        Course::Fails(failure) => {
            end(
                phase::FAILED,
                JOB_FAILED,
                events::why_failed(failure, &job.metadata),
            );
        }
        Course::Completes => end(phase::COMPLETED, JOB_COMPLETE, events::why_complete(counts)),
        Course::Paused(pause) => {
            let (reason, message) = match pause {
                Pause::Specified => (PAUSED_BY_USER, "spec.paused is true".to_owned()),
                Pause::Failure(_) => (PAUSED_BY_FAILURE, events::paused(counts.failed)),
            };
            jobs::set(conditions, JOB_PAUSED, ("True", reason), message, now);
            status.phase = phase::PAUSED.into();
        }
        Course::Runs => {
            // Failures that the user has accepted pause the job no more.
            if counts.failed > 0 && job.spec.failure_policy.kind == "Pause" {
                let message = format!("continues though {} failed", events::some(counts.failed));
                jobs::set(conditions, JOB_PAUSED, ("False", RESUMED), message, now);
            } else {
                jobs::remove(conditions, JOB_PAUSED);
            }
            status.phase = phase::RUNNING.into();
        }
    }
}

/// The event of this course, if it is a new one.
fn announce(
    plan: &mut Plan,
    job: &BroadcastJob,
    status: &BroadcastJobStatus,
    course: Course,
    counts: Counts,
) {
    let message = |kind| jobs::get(&status.conditions, kind).map_or("", |one| &*one.message);
    match course {
        Course::Fails(failure @ (Failure::Fast | Failure::Deadline)) => {
            plan.events.push(events::failure(failure, message(JOB_FAILED)));
        }
        Course::Completes => plan.events.push(events::complete(&job.metadata, counts)),
        Course::Paused(Pause::Failure(true)) => {
            let event = EventNote::new(&reasons::JOB_PAUSED, message(JOB_PAUSED));
            plan.events.push(event);
        }
        Course::Ended | Course::Paused(_) | Course::Runs => {}
    }
}

/// The event of pods that the scheduler finds no room for.
fn unscheduled(places: &Places<'_>) -> Option<EventNote> {
    let waiting = places
        .members()
        .filter(|member| member.state == State::Active && member.stays);
    let mut waiting = waiting.filter_map(|member| Some((member.view, refusal(member.view)?)));
    let (first, message) = waiting.next()?;
    Some(events::no_room(waiting.count() + 1, &first.name, message))
}

/// What the scheduler says of a pod that it cannot bind.
fn refusal(pod: &PodView) -> Option<&str> {
    let scheduled = pod.condition("PodScheduled")?;
    let refused = scheduled.status == Truth::False && &*scheduled.reason == "Unschedulable";
    refused.then_some(&*scheduled.message)
}
