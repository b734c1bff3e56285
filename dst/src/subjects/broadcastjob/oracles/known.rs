//! What the sender of a write for a BroadcastJob may have believed of it.

use super::super::start::JOBS;
use crate::rules::belief::Seen;
use crate::rules::prelude::*;

/// The job with this uid as the sender of a write may have seen it.
pub fn believed<'m>(write: &Write<'_>, mirror: &'m Mirror, uid: &str) -> Seen<'m> {
    write.sees(mirror, JOBS, uid)
}

/// Is it without an end?
pub fn is_never(job: &Object) -> bool {
    job.value()["spec"]["completionPolicy"]["type"] == "Never"
}

/// Has it ended for good?
pub fn has_ended(job: &Object) -> bool {
    let phase = &job.value()["status"]["phase"];
    (phase == "completed" || phase == "failed") && !is_never(job)
}

/// Has its status an end? That of one without an end may be reopened.
pub fn has_stored_end(job: &Object) -> bool {
    let phase = &job.value()["status"]["phase"];
    phase == "completed" || phase == "failed"
}

/// Its `failurePolicy.type`.
pub fn failure_policy(job: &Object) -> &str {
    text(&job.value()["spec"]["failurePolicy"]["type"])
}

/// Did its containers restart more often than its job allows?
pub fn is_over_limit(pod: &Object, job: &Object) -> bool {
    let value = pod.value();
    let counts = items(&value["status"]["containerStatuses"]).map(|one| number(&one["restartCount"]));
    let limit = number(&job.value()["spec"]["failurePolicy"]["restartLimit"]);
    value["spec"]["restartPolicy"] == "OnFailure" && counts.sum::<i64>() > limit
}

/// Has the pod failed, as far as its job is concerned? One that is being deleted has not.
pub fn pod_has_failed(pod: &Object, job: &Object) -> bool {
    let phase = &pod.value()["status"]["phase"];
    !pod.is_going() && (phase == "Failed" || (phase != "Succeeded" && is_over_limit(pod, job)))
}

/// May the sender believe that a pod of the job has failed?
pub fn may_have_failed(job: &Object, write: &Write<'_>, mirror: &Mirror) -> bool {
    let has_failed = |pod: &Object| !pod.gone && pod.owner() == &*job.uid && pod_has_failed(pod, job);
    write.sees_all(mirror, PODS).any(|pod| pod.may_be(has_failed))
}

/// A pod of the job that has failed, as the sender must know.
pub fn known_failure<'m>(job: &Object, write: &Write<'_>, mirror: &'m Mirror) -> Option<&'m Object> {
    let has_failed = |pod: &Object| !pod.gone && pod.owner() == &*job.uid && pod_has_failed(pod, job);
    let mut pods = write.sees_all(mirror, PODS);
    pods.find(|pod| pod.must_be(has_failed)).map(|pod| pod.first())
}

/// Has the pod ended by itself?
pub fn pod_has_ended(pod: &Object) -> bool {
    let phase = &pod.value()["status"]["phase"];
    phase == "Succeeded" || phase == "Failed"
}
