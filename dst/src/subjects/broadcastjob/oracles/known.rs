//! What the sender of a write for a BroadcastJob may have believed of it.

use std::sync::Arc;

use crate::engine::oracles::{Mirror, Object, PODS, Write};
use crate::subjects::broadcastjob::start::JOBS;

/// The versions of the job with this uid that the sender of a write may have believed.
pub fn believed<'m>(write: &Write<'_>, mirror: &'m Mirror, uid: &str) -> &'m [Arc<Object>] {
    mirror.of(JOBS).window(uid, write.sent.floors.of(JOBS))
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
    job.value()["spec"]["failurePolicy"]["type"]
        .as_str()
        .unwrap_or_default()
}

/// Did its containers restart more often than its job allows?
pub fn is_over_limit(pod: &Object, job: &Object) -> bool {
    let value = pod.value();
    let statuses = value["status"]["containerStatuses"].as_array();
    let counts = statuses
        .into_iter()
        .flatten()
        .map(|one| one["restartCount"].as_i64().unwrap_or(0));
    let limit = job.value()["spec"]["failurePolicy"]["restartLimit"]
        .as_i64()
        .unwrap_or(0);
    value["spec"]["restartPolicy"] == "OnFailure" && counts.sum::<i64>() > limit
}

/// Has the pod failed, as far as its job is concerned? One that is being deleted has not.
pub fn pod_has_failed(pod: &Object, job: &Object) -> bool {
    let phase = &pod.value()["status"]["phase"];
    !pod.is_going() && (phase == "Failed" || (phase != "Succeeded" && is_over_limit(pod, job)))
}

/// May the sender believe that a pod of the job has failed?
pub fn may_have_failed(job: &Object, write: &Write<'_>, mirror: &Mirror) -> bool {
    let (log, floor) = (mirror.of(PODS), write.sent.floors.of(PODS));
    let mut pods = log.objects.keys().flat_map(|uid| log.window(uid, floor));
    pods.any(|pod| !pod.gone && pod.owner() == &*job.uid && pod_has_failed(pod, job))
}

/// A pod of the job that has failed, as the sender must know.
pub fn known_failure<'m>(job: &Object, write: &Write<'_>, mirror: &'m Mirror) -> Option<&'m Arc<Object>> {
    let (log, floor) = (mirror.of(PODS), write.sent.floors.of(PODS));
    let windows = log.objects.keys().map(|uid| log.window(uid, floor));
    let mut known = windows.filter_map(|versions| {
        let first = versions.first().filter(|first| first.version <= floor)?;
        let has_failed =
            |pod: &Arc<Object>| !pod.gone && pod.owner() == &*job.uid && pod_has_failed(pod, job);
        versions.iter().all(has_failed).then_some(first)
    });
    known.next()
}

/// Has the pod ended by itself?
pub fn pod_has_ended(pod: &Object) -> bool {
    let phase = &pod.value()["status"]["phase"];
    phase == "Succeeded" || phase == "Failed"
}
