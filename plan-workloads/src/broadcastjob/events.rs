//! The words of events and conditions. Clients match on them.

use std::time::Duration;

use kruise_api::{
    meta::ObjectMeta,
    names::conditions::{NO_POD_RUNS, PODS_RUN},
};
use kruise_plan_kit::{EventNote, FailureNote, Step, events};

use super::reasons;
use super::{
    course::Failure,
    places::{Counts, Place, Places},
};

/// Reports the creation of a pod.
pub(super) fn creation(mut step: Step, pod: &str) -> Step {
    let text = format!("Created pod: {pod}");
    step.done = Some(EventNote::new(&events::SUCCESSFUL_CREATE, text));
    step.failed = Some(FailureNote::new(
        &events::FAILED_CREATE,
        "Error creating: ".into(),
    ));
    step
}

/// Reports the deletion of a pod.
pub(super) fn deletion(mut step: Step, pod: &str) -> Step {
    let text = format!("Delete pod: {pod}");
    step.done = Some(EventNote::new(&events::SUCCESSFUL_DELETE, text));
    step.failed = Some(FailureNote::new(
        &events::FAILED_DELETE,
        "Error deleting: ".into(),
    ));
    step
}

/// The event of a job with more active pods than it may have.
pub(super) fn too_many(active: i32, limit: i32) -> EventNote {
    let text = format!("{active} pods are active, and parallelism allows {limit}");
    EventNote::new(&reasons::TOO_MANY_ACTIVE, text)
}

/// The event of a node with several pods.
pub(super) fn duplicate(place: &Place<'_>) -> Option<EventNote> {
    let second = place.members.get(1)?;
    let text = format!(
        "Duplicated pod {} found on same node {}",
        second.view.name, place.name
    );
    Some(EventNote::new(&reasons::DUPLICATE_POD, text))
}

/// The event of a paused job that goes on.
pub(super) fn continues() -> EventNote {
    EventNote::new(&reasons::JOB_CONTINUES, "the job continues")
}

/// So many pods.
pub(super) fn some(pods: i32) -> String {
    let plural = if pods == 1 { "" } else { "s" };
    format!("{pods} pod{plural}")
}

/// Message of the event and the condition of a job that a failed pod pauses.
pub(super) fn paused(failed: i32) -> String {
    format!(
        "{} failed: the failure policy pauses the job. It continues when the failed pods are gone, or when spec.paused \
         is set and removed",
        some(failed)
    )
}

/// The event of a job that has failed.
pub(super) fn failure(failure: Failure, message: &str) -> EventNote {
    let reason = match failure {
        Failure::Fast => &reasons::JOB_FAILED_FAST,
        Failure::Deadline => &events::DEADLINE_EXCEEDED,
    };
    EventNote::new(reason, message)
}

/// Message of the condition of a job that has failed.
pub(super) fn why_failed(failure: Failure, job: &ObjectMeta) -> String {
    match failure {
        Failure::Fast => "failure policy is FailurePolicyTypeFailFast and failed pod is found".into(),
        Failure::Deadline => {
            format!(
                "Job {}/{} was active longer than specified deadline",
                job.namespace, job.name
            )
        }
    }
}

/// Reason and message of the condition that says whether pods of an ended job run.
pub(super) fn stopped(any_runs: bool) -> (&'static str, [&'static str; 2]) {
    if any_runs {
        ("False", [PODS_RUN, "pods still run: they are deleted"])
    } else {
        ("True", [NO_POD_RUNS, "no pod runs"])
    }
}

/// Message of the condition of a job that is complete.
pub(super) fn why_complete(counts: Counts) -> String {
    let Counts {
        succeeded, failed, ..
    } = counts;
    format!("Job completed, {succeeded} pods succeeded, {failed} pods failed")
}

/// The event of a job that is complete.
pub(super) fn complete(job: &ObjectMeta, counts: Counts) -> EventNote {
    let (namespace, name) = (&job.namespace, &job.name);
    let Counts {
        succeeded, failed, ..
    } = counts;
    let text =
        format!("Job {namespace}/{name} is completed, {succeeded} pods succeeded, {failed} pods failed");
    EventNote::new(&reasons::JOB_COMPLETE, text)
}

/// The event of pods that may not run on their nodes by their own specification: their number, and one of them.
pub(super) fn unfit_pods(places: &Places<'_>) -> Option<EventNote> {
    let first = places.unfit().next()?;
    let (pods, name, node) = (places.unfit().count(), &first.name, first.assigned_node()?);
    let text = format!(
        "pods may not run on their nodes by their own specification, though the template allows it: {pods}, among them {name} \
         on node {node}. A webhook or an admission plugin may have changed them"
    );
    Some(EventNote::new(&reasons::UNFIT_PODS, text))
}

/// How a pod is that may not run on its node by its own specification, and is deleted after so long.
pub(super) fn unfit(left: Duration) -> String {
    let seconds = left.as_secs();
    format!(
        "may not run on its node by its own specification, though the template allows it: another one takes its place in \
         {seconds} s"
    )
}

/// The event of a job that waits for pods which the scheduler finds no room for: their number, one of them, and
/// what the scheduler says of it.
pub(super) fn no_room(pods: usize, pod: &str, message: &str) -> EventNote {
    let text = format!("pods wait for room on their nodes: {pods}, among them {pod}: {message}");
    EventNote::new(&reasons::NO_ROOM_FOR_PODS, text)
}
