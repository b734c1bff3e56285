//! An AdvancedCronJob as users create it, what they do to it and its jobs, and what becomes of clocks.

use crate::rules::prelude::*;

pub const NAME: &str = "advancedcronjob";
pub const CRON_JOBS: Resource = Resource::kruise("advancedcronjobs", "AdvancedCronJob");

/// An AdvancedCronJob when it is created.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub schedule: String,
    /// `concurrencyPolicy`.
    pub policy: String,
    /// How long a pod of a job runs.
    pub seconds: u32,
    /// Do they fail?
    pub fails: bool,
    /// Limits of the history: of jobs that ended well, and of those that failed.
    pub limits: (u8, u8),
    /// `startingDeadlineSeconds`.
    pub deadline: Option<u32>,
    /// `ttlSecondsAfterFinished` of the jobs.
    pub ttl: Option<u32>,
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    Schedule(String),
    /// Another `concurrencyPolicy`.
    Policy(String),
    Paused(bool),
    /// Other limits of the history.
    Limits(u8, u8),
    /// Another `startingDeadlineSeconds`, or none.
    Deadline(Option<u32>),
    /// Deletes the job at this place in the order of names.
    Delete(u8),
    /// Managers that start from now on are on machines whose clocks are so many seconds fast, or slow.
    Skew(i64),
}

/// The object of a start.
pub fn manifest(start: &Start) -> Value {
    let command = format!("sleep {}; exit {}", start.seconds, u8::from(start.fails));
    let mut job = json!({
        "backoffLimit": 0,
        "template": {"metadata": {"labels": {"app": "tick"}}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "web:1", "command": ["sh", "-c", command]}]}},
    });
    if let Some(ttl) = start.ttl {
        job["ttlSecondsAfterFinished"] = ttl.into();
    }
    let mut spec = json!({
        "schedule": start.schedule, "concurrencyPolicy": start.policy,
        "successfulJobsHistoryLimit": start.limits.0, "failedJobsHistoryLimit": start.limits.1,
        "template": {"jobTemplate": {"metadata": {"labels": {"app": "tick"}}, "spec": job}},
    });
    if let Some(deadline) = start.deadline {
        spec["startingDeadlineSeconds"] = deadline.into();
    }
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob",
           "metadata": {"name": "tick", "namespace": "default"}, "spec": spec})
}
