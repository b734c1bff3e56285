//! An AdvancedCronJob as users create it.

pub use crate::engine::resource::JOBS;
use crate::rules::prelude::*;

/// Name of the subject.
pub const NAME: &str = "advancedcronjob";
/// The component of their controller.
pub const CONTROLLER: &str = "advancedcronjob-controller";
/// AdvancedCronJobs.
pub const CRON_JOBS: Resource = Resource::kruise("advancedcronjobs", "AdvancedCronJob");

/// An AdvancedCronJob when it is created.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// `schedule`.
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

impl Default for Start {
    fn default() -> Self {
        Self {
            schedule: "* * * * *".into(),
            policy: "Allow".into(),
            seconds: 1,
            fails: false,
            limits: (3, 1),
            deadline: None,
            ttl: None,
        }
    }
}

/// The object of a start.
pub fn manifest(start: &Start) -> Value {
    let code = u8::from(start.fails);
    let command = format!("sleep {}; exit {code}", start.seconds);
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
