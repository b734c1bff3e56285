//! *"A pod that has ended is never deleted; one that runs is deleted when the job has ended, or when it may not stay."*

use serde_json::{Value, json};

use super::known::{believed, has_ended, is_never, pod_has_ended};
use crate::engine::oracles::{Mirror, NODES, Object, PODS, Violation, Write};
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
    let may_end = jobs.any(|job| has_ended(job) || may_fail(job, write, mirror));
    if may_end || !must_stay(before, write, mirror) {
        return None;
    }
    violation(
        "a reason for each deletion of a job",
        "it ran, and its job had not ended",
    )
}

/// May the sender have ended the job for a failure, or at its deadline?
fn may_fail(job: &Object, write: &Write<'_>, mirror: &Mirror) -> bool {
    let spec = &job.value()["spec"];
    let log = mirror.of(PODS);
    let failed = |pod: &Object| pod.owner() == &*job.uid && pod.value()["status"]["phase"] == "Failed";
    let mut pods = log
        .objects
        .keys()
        .flat_map(|uid| log.window(uid, write.sent.floors.of(PODS)));
    if spec["failurePolicy"]["type"] == "FailFast" && pods.any(|pod| failed(pod)) {
        return true;
    }
    let seconds = spec["completionPolicy"]["activeDeadlineSeconds"].as_i64();
    let created = job.value()["metadata"]["creationTimestamp"].as_str();
    let created = created.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let over = |seconds: i64| created.is_some_and(|at| write.now.as_second() >= at.as_second() + seconds);
    !is_never(job) && seconds.is_some_and(over)
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
    named.peek().is_some()
        && named.all(|versions| versions.iter().all(|node| !node.gone && may_stay(&own, node)))
}
