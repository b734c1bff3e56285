//! Oracles of BroadcastJobs, written from their specification.

mod end;
mod pods;
mod status;

use super::start::JOBS;
use crate::rules::pod_writes;
use crate::rules::prelude::*;
use crate::subjects::nodes::OnNodes;

/// What judges the BroadcastJob of a scenario.
#[derive(Default)]
pub struct BroadcastJobOracles(OnNodes);

impl Oracles for BroadcastJobOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let verdict = self.judge_other(write, mirror);
        let succession = self.0.judge(write, mirror);
        verdict
            .or(succession)
            .or_else(|| pods::judge(write, mirror))
            .or_else(|| status::judge(write, mirror))
    }

    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        pod_writes::judge_pods(write, mirror, JOBS)
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        // One with a time to live may be gone.
        mirror
            .only(JOBS)
            .map_or(Ok(()), |job| end::unfinished(job, mirror))
    }

    fn judge_sent(&mut self, write: &Write<'_>, _: &Mirror) -> Option<Violation> {
        self.0.judge_sent(write, super::SUBJECT.component)
    }
}

/// Is it without an end?
fn is_never(job: &Object) -> bool {
    job.spec()["completionPolicy"]["type"] == "Never"
}

/// Has its status an end? That of one without an end may be reopened.
fn has_stored_end(job: &Object) -> bool {
    let phase = &job.status()["phase"];
    phase == "completed" || phase == "failed"
}

/// Has it ended for good?
fn has_ended(job: &Object) -> bool {
    has_stored_end(job) && !is_never(job)
}

/// Its `failurePolicy.type`.
fn failure_policy(job: &Object) -> &str {
    text(&job.spec()["failurePolicy"]["type"])
}

/// Did its containers restart more often than its job allows?
fn is_over_limit(pod: &Object, job: &Object) -> bool {
    let counts = items(&pod.status()["containerStatuses"]).map(|one| number(&one["restartCount"]));
    let limit = number(&job.spec()["failurePolicy"]["restartLimit"]);
    pod.spec()["restartPolicy"] == "OnFailure" && counts.sum::<i64>() > limit
}

/// Has the pod failed, as far as its job is concerned? One that is being deleted has not.
fn pod_has_failed(pod: &Object, job: &Object) -> bool {
    let end = pod.end();
    !pod.is_going() && (end == Some("Failed") || (end.is_none() && is_over_limit(pod, job)))
}

/// Is it a pod of the job that has failed and that is there?
fn is_failure(pod: &Object, job: &Object) -> bool {
    !pod.gone && pod.owner() == &*job.uid && pod_has_failed(pod, job)
}

/// A pod of the job that has failed, as the sender must know.
fn known_failure<'m>(job: &Object, write: &Write<'_>, mirror: &'m Mirror) -> Option<&'m Object> {
    let mut pods = write.sees_all(mirror, PODS);
    let failed = pods.find(|pod| pod.must_be(|pod| is_failure(pod, job)));
    failed.map(|pod| pod.first())
}

/// Does a failed pod keep a job in this state from creating pods? One that a user let go on in spite of it is not kept.
fn holds(job: &Object) -> bool {
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
fn oracle(policy: &str) -> &'static str {
    if policy == "Pause" {
        "a failed pod pauses the job"
    } else {
        "a failed pod ends the job"
    }
}
