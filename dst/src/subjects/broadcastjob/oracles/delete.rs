//! *"A pod that has ended is never deleted; one that runs is deleted when the job has ended, or when it may not stay. A job is
//! deleted its time to live after its end, and not before."*

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::known::{believed, has_ended, has_stored_end, pod_has_ended};
use crate::engine::oracles::{Mirror, NODES, Object, Violation, Write};
use crate::subjects::broadcastjob::start::JOBS;
use crate::subjects::{fit, nodes::node_of};

/// Judges the deletion of a pod.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" || write.method != kruise_sim::Method::Delete {
        return None;
    }
    let [before, _] = write.pod(mirror)?;
    let violation = |oracle, what: &str| {
        let what = format!("{} deleted {}: {what}", write.process, before.name);
        Some(Violation { oracle, what })
    };
    if before.is_going() {
        return None;
    }
    if pod_has_ended(before) {
        return violation("pods that have ended stay", "it had ended");
    }
    let mut jobs = believed(write, mirror, before.owner()).iter();
    // The end is stored first.
    let may_end = jobs.any(|job| has_stored_end(job));
    if may_end || !must_stay(before, write, mirror) {
        return None;
    }
    violation(
        "a reason for each deletion of a job",
        "it ran, and its job had not ended",
    )
}

/// Judges the deletion of a job.
pub fn judge_job(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != JOBS.plural || write.method != kruise_sim::Method::Delete {
        return None;
    }
    let versions = mirror.of(JOBS).changed_at(write.marks.of(JOBS))?;
    // It is deleted as the sender knows it.
    let job = versions.iter().rev().find(|job| !job.gone && !job.is_going())?;
    let (spec, status) = (&job.value()["spec"], &job.value()["status"]);
    let seconds = spec["completionPolicy"]["ttlSecondsAfterFinished"].as_i64();
    let ended = status["completionTime"].as_str();
    let ended = ended.and_then(|text| text.parse::<Timestamp>().ok());
    let due = seconds
        .zip(ended)
        .and_then(|(seconds, ended)| ended.checked_add(SignedDuration::from_secs(seconds)).ok());
    let is_due = has_ended(job) && due.is_some_and(|due| write.sender_now() >= due);
    (!is_due).then(|| Violation {
        oracle: "a job is deleted when its time to live is over",
        what: format!("{} deleted a job that {due:?} ends", write.process),
    })
}

/// Must the sender believe that the pod may stay on its node?
fn must_stay(pod: &Object, write: &Write<'_>, mirror: &Mirror) -> bool {
    let own = json!({"spec": pod.value()["spec"]});
    let node = node_of(pod);
    // One that is not bound yet needs a node that takes new pods.
    let may_stay = if pod.value()["spec"]["nodeName"].is_string() {
        |own: &Value, node: &Object| fit::continues(own, node, &[])
    } else {
        |own: &Value, node: &Object| fit::runs(own, node, &[])
    };
    let log = mirror.of(NODES);
    let named = log
        .objects
        .keys()
        .map(|uid| log.window(uid, write.sent.floors.of(NODES)));
    let mut named = named
        .filter(|versions| versions.first().is_some_and(|one| Some(&*one.name) == node))
        .peekable();
    // By a clock that is fast, a pod that is for a node which the sender need not know is old.
    let floor = write.sent.floors.of(NODES);
    let is_known = |versions: &[Arc<Object>]| {
        write.skew <= 0 || versions.first().is_some_and(|one| one.version <= floor)
    };
    named.peek().is_some()
        && named.all(|versions| {
            is_known(versions) && versions.iter().all(|node| !node.gone && may_stay(&own, node))
        })
}
