//! What a BroadcastJob and its pods say.

use crate::rules::prelude::*;

/// Is it without an end?
pub(super) fn is_never(job: &Object) -> bool {
    job.spec()["completionPolicy"]["type"] == "Never"
}

/// Has its status an end? That of one without an end may be reopened.
pub(super) fn has_stored_end(job: &Object) -> bool {
    let phase = &job.status()["phase"];
    phase == "completed" || phase == "failed"
}

/// Has it ended for good?
pub(super) fn has_ended(job: &Object) -> bool {
    has_stored_end(job) && !is_never(job)
}

/// Its `failurePolicy.type`.
pub(super) fn failure_policy(job: &Object) -> &str {
    text(&job.spec()["failurePolicy"]["type"])
}

/// Did its containers restart more often than its job allows?
pub(super) fn is_over_limit(pod: &Object, job: &Object) -> bool {
    let counts = items(&pod.status()["containerStatuses"]).map(|one| number(&one["restartCount"]));
    let limit = number(&job.spec()["failurePolicy"]["restartLimit"]);
    pod.spec()["restartPolicy"] == "OnFailure" && counts.sum::<i64>() > limit
}

/// Has the pod failed, as far as its job is concerned? One that is being deleted has not.
pub(super) fn pod_has_failed(pod: &Object, job: &Object) -> bool {
    let end = pod.end();
    !pod.is_going() && (end == Some("Failed") || (end.is_none() && is_over_limit(pod, job)))
}

/// Is it a pod of the job that has failed and that is there?
pub(super) fn is_failure(pod: &Object, job: &Object) -> bool {
    !pod.gone && pod.owner() == &*job.uid && pod_has_failed(pod, job)
}

/// A pod of the job that has failed, as the sender must know.
pub(super) fn known_failure<'m>(job: &Object, write: &Write<'_>, mirror: &'m Mirror) -> Option<&'m Object> {
    let mut pods = write.sees_all(mirror, PODS);
    let failed = pods.find(|pod| pod.must_be(|pod| is_failure(pod, job)));
    failed.map(|pod| pod.first())
}

/// Does a failed pod keep a job in this state from creating pods? One that a user let go on in spite of it is not kept.
pub(super) fn holds(job: &Object) -> bool {
    let paused = job.condition("Paused");
    let is_accepted = paused.is_some_and(|paused| paused["reason"] != "FailedPods");
    let is_paused = job.spec()["paused"] == true;
    match failure_policy(job) {
        _ if is_paused || has_stored_end(job) || job.is_going() => false,
        "FailFast" => true,
        "Pause" => !is_accepted,
        _ => false,
    }
}

/// The oracle of a failure policy.
pub(super) fn oracle(policy: &str) -> &'static str {
    if policy == "Pause" {
        "a failed pod pauses the job"
    } else {
        "a failed pod ends the job"
    }
}
