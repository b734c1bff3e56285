//! The state that must be reached after the last edit and the last fault.

use super::super::start::JOBS;
use super::known::{container, has_ended, pods};
use crate::rules::prelude::*;

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror) -> Result<(), String> {
    // One with a short time to live may be gone.
    let Some(job) = mirror.of(JOBS).now().next() else {
        return Ok(());
    };
    wrong!(job.is_going() => "the job is still being deleted");
    let (spec, status) = (&job.value()["spec"], &job.value()["status"]);
    if has_ended(job) {
        wrong!(spec["ttlSecondsAfterFinished"].as_i64().is_some_and(|ttl| ttl < 100)
            => "it is to be deleted after its time to live");
        let failed = number(&status["failed"]);
        let conditions = items(&status["conditions"]);
        let conditions: Vec<&str> = conditions.filter_map(|one| one["type"].as_str()).collect();
        let phase = status["phase"].as_str();
        let kind = if phase == Some("Succeeded") {
            "JobSucceeded"
        } else {
            "JobFailed"
        };
        wrong!(!conditions.contains(&kind) => "{phase:?}, and its conditions are {conditions:?}");
        let is_late = conditions.contains(&"JobFailed") && failed == 0;
        wrong!(is_late && spec["activeDeadlineSeconds"].is_null()
            => "it has failed, without a failed pod and without a deadline");
        return Ok(());
    }
    if spec["paused"] == true {
        return expect("status.phase", status["phase"].as_str(), Some("Paused"));
    }
    wrong!(some pod in pods(mirror).next()
        => "the job has not ended, and pod {} is at {:?}", pod.name, container(pod, &job.uid));
    wrong!(!spec["activeDeadlineSeconds"].is_null() => "its deadline is to come");
    expect("status.phase", status["phase"].as_str(), Some("Waiting"))?;
    expect("status.match", status["match"].as_i64(), Some(0))
}
