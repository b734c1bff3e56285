//! The state that must be reached after the last edit and the last fault.

use super::facts::{failure_policy, has_ended, is_never, pod_has_failed};
use crate::rules::fit;
use crate::rules::prelude::*;
use crate::subjects::nodes::node_of;

/// What is not yet as it should be.
pub fn unfinished(job: &Object, mirror: &Mirror) -> Result<(), String> {
    let pods: Vec<&Arc<Object>> = mirror.owned(PODS, job).collect();
    wrong!(some pod in pods.iter().find(|pod| pod.is_going()) => "pod {} is still being deleted", pod.name);
    let (spec, status) = (job.spec(), job.status());
    if has_ended(job) {
        return ended(job, &pods);
    }
    let succeeded = pods.iter().filter(|pod| pod.end() == Some("Succeeded")).count() as i64;
    let failed = pods.iter().filter(|pod| pod_has_failed(pod, job)).count() as i64;
    let active = pods.len() as i64 - succeeded - failed;
    wrong!(active > 0 => "{active} pods have not ended yet");
    let policy = failure_policy(job);
    // One without an end stays failed, whatever becomes of its pods.
    let has_failed = is_never(job) && status["phase"] == "failed";
    let fails = policy == "FailFast" && (failed > 0 || has_failed);
    let pauses = policy == "Pause" && failed > 0;
    let is_on = |node: &Object| pods.iter().any(|pod| node_of(pod) == Some(&*node.name));
    let nodes: Vec<&Arc<Object>> = mirror.of(NODES).now().collect();
    let runs = |node: &Object| fit::runs(&spec["template"], node, &[]);
    let desired = nodes.iter().filter(|node| is_on(node) || runs(node)).count() as i64;
    let rests = spec["paused"] == true || (fails && is_never(job)) || (pauses && status["phase"] == "paused");
    if !rests {
        wrong!(some node in nodes.iter().find(|node| !is_on(node) && runs(node))
            => "node {} has no pod", node.name);
        wrong!(!is_never(job) && desired > 0 => "all pods have ended, and the job is {}", status["phase"]);
        wrong!(!is_never(job) && !spec["completionPolicy"]["activeDeadlineSeconds"].is_null()
            => "its deadline is to come");
    }
    let phase = if spec["paused"] == true || (rests && !fails) {
        "paused"
    } else if fails {
        "failed"
    } else {
        "running"
    };
    expect("status.phase", status["phase"].as_str(), Some(phase))?;
    counts!(status => "active": active)?;
    // A failed job keeps its counts, though nodes and pods change.
    if fails && is_never(job) {
        return Ok(());
    }
    counts!(status => "succeeded": succeeded, "failed": failed, "desired": desired)
}

/// What an ended job leaves.
fn ended(job: &Object, pods: &[&Arc<Object>]) -> Result<(), String> {
    wrong!(!job.spec()["completionPolicy"]["ttlSecondsAfterFinished"].is_null()
        => "it is to be deleted after its time to live");
    wrong!(some pod in pods.iter().find(|pod| pod.end().is_none())
        => "the job has ended, and pod {} runs", pod.name);
    let status = job.status();
    counts!(status => "active": 0)?;
    let kind = if status["phase"] == "failed" {
        "Failed"
    } else {
        "Complete"
    };
    let conditions = items(&status["conditions"]);
    let others = conditions.filter(|one| one["status"] == "True" && one["type"] != "PodsStopped");
    expect(
        "its conditions",
        others.map(|one| text(&one["type"])).collect::<Vec<_>>(),
        vec![kind],
    )?;
    expect("PodsStopped", job.state("PodsStopped"), "True")
}
