//! *"A pod that has ended is never deleted; one that runs is deleted when the job has ended, or when it may not stay. A job is
//! deleted its time to live after its end, and not before."*

use super::super::start::JOBS;
use super::known::{believed, has_ended, has_stored_end, pod_has_ended};
use crate::rules::fit;
use crate::rules::prelude::*;
use crate::subjects::nodes::node_of;

/// Judges the deletion of a pod.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, _] = write.pod(mirror).filter(|_| write.method == Method::Delete)?;
    if before.is_going() {
        return None;
    }
    never!(write, "pods that have ended stay", pod_has_ended(before) => "it had ended");
    // The end is stored first.
    let may_end = believed(write, mirror, before.owner()).may_be(has_stored_end);
    never!(write, "a reason for each deletion of a job",
        !may_end && must_stay(before, write, mirror) => "it ran, and its job had not ended");
    None
}

/// Judges the deletion of a job.
pub fn judge_job(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != JOBS.plural || write.method != Method::Delete {
        return None;
    }
    let versions = mirror.of(JOBS).changed_at(write.marks.of(JOBS))?;
    // It is deleted as the sender knows it.
    let job = versions.iter().rev().find(|job| !job.gone && !job.is_going())?;
    let (spec, status) = (&job.value()["spec"], &job.value()["status"]);
    let due = after(
        &status["completionTime"],
        &spec["completionPolicy"]["ttlSecondsAfterFinished"],
    );
    let is_due = has_ended(job) && due.is_some_and(|due| write.sender_now() >= due);
    never!(write, "a job is deleted when its time to live is over", !is_due => "{due:?} ends it");
    None
}

/// Must the sender believe that the pod may stay on its node?
fn must_stay(pod: &Object, write: &Write<'_>, mirror: &Mirror) -> bool {
    let own = json!({"spec": pod.value()["spec"]});
    // One that is not bound yet needs a node that takes new pods.
    let is_bound = pod.value()["spec"]["nodeName"].is_string();
    let may_stay = |node: &Object| {
        let fits = if is_bound { fit::continues } else { fit::runs };
        !node.gone && fits(&own, node, &[])
    };
    let named = write
        .sees_all(mirror, NODES)
        .filter(|node| Some(node.name()) == node_of(pod));
    let mut named = named.peekable();
    // By a clock that is fast, a pod that is for a node which the sender need not know is old.
    named.peek().is_some() && named.all(|node| (write.skew <= 0 || node.is_known) && node.is(may_stay))
}
