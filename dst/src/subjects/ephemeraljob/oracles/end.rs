//! The state that must be reached after the last edit and the last fault.

use super::known::{container, has_ended, pods};
use crate::engine::oracles::Mirror;
use crate::subjects::ephemeraljob::start::JOBS;
use crate::subjects::settled::expect;

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror) -> Result<(), String> {
    // One with a short time to live may be gone.
    let Some(job) = mirror.of(JOBS).now().next() else {
        return Ok(());
    };
    if job.is_going() {
        return Err("the job is still being deleted".into());
    }
    let (spec, status) = (&job.value()["spec"], &job.value()["status"]);
    if has_ended(job) {
        if spec["ttlSecondsAfterFinished"]
            .as_i64()
            .is_some_and(|ttl| ttl < 100)
        {
            return Err("it is to be deleted after its time to live".into());
        }
        let failed = status["failed"].as_i64().unwrap_or(0);
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let conditions: Vec<&str> = conditions.filter_map(|one| one["type"].as_str()).collect();
        let phase = status["phase"].as_str();
        let kind = if phase == Some("Succeeded") {
            "JobSucceeded"
        } else {
            "JobFailed"
        };
        if !conditions.contains(&kind) {
            return Err(format!("{phase:?}, and its conditions are {conditions:?}"));
        }
        let is_late = conditions.contains(&"JobFailed") && failed == 0;
        if is_late && spec["activeDeadlineSeconds"].is_null() {
            return Err("it has failed, without a failed pod and without a deadline".into());
        }
        return Ok(());
    }
    if spec["paused"] == true {
        return expect("status.phase", status["phase"].as_str(), Some("Paused"));
    }
    if let Some(pod) = pods(mirror).next() {
        return Err(format!(
            "the job has not ended, and pod {} is at {:?}",
            pod.name,
            container(pod, &job.uid)
        ));
    }
    if !spec["activeDeadlineSeconds"].is_null() {
        return Err("its deadline is to come".into());
    }
    expect("status.phase", status["phase"].as_str(), Some("Waiting"))?;
    expect("status.match", status["match"].as_i64(), Some(0))
}
