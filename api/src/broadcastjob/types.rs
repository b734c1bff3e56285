//! The fields.

use go_compat::IntOrString;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::condition::JobCondition;
use crate::convert::convert_to_newer;
use crate::meta::{ObjectMeta, null_as_default, whole_seconds};
use crate::parse::Parse;

/// A BroadcastJob as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BroadcastJob {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: BroadcastJobSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: BroadcastJobStatus,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BroadcastJobSpec {
    /// Most active pods, or percent of the nodes that are to run one; unset means all.
    pub parallelism: Option<IntOrString>,
    /// Template of the pods, as stored: unknown fields survive.
    pub template: Value,
    /// When the job ends, and what becomes of it.
    #[serde(deserialize_with = "null_as_default")]
    pub completion_policy: CompletionPolicy,
    /// Create no more pods.
    #[serde(deserialize_with = "null_as_default")]
    pub paused: bool,
    /// What happens when a pod has failed.
    #[serde(deserialize_with = "null_as_default")]
    pub failure_policy: FailurePolicy,
}

/// When a job ends, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompletionPolicy {
    /// `Always` (default) or `Never`.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
    /// Seconds after its start when the job fails.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after its end when the job is deleted.
    pub ttl_seconds_after_finished: Option<i32>,
}

impl CompletionPolicy {
    /// Does the job go on when all its pods have ended?
    pub fn is_never(&self) -> bool {
        self.kind == "Never"
    }
}

/// What happens when a pod has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailurePolicy {
    /// `FailFast` (default), `Continue` or `Pause`.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
    /// Restarts that a pod may take before it counts as failed.
    #[serde(deserialize_with = "null_as_default")]
    pub restart_limit: i32,
}

/// Reported state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BroadcastJobStatus {
    /// Conditions.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<JobCondition>,
    /// When the controller first saw the job.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When the job ended.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// Pods that run, or are about to.
    pub active: i32,
    /// Pods that succeeded.
    pub succeeded: i32,
    /// Pods that failed.
    pub failed: i32,
    /// Nodes that are to run a pod.
    pub desired: i32,
    /// `running`, `paused`, `completed` or `failed`; empty before the first report.
    #[serde(deserialize_with = "null_as_default")]
    pub phase: String,
}

impl BroadcastJob {
    /// Reads an object of either version. `api_version` stays that of the object.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(mut object: Value) -> Result<Self, String> {
        let version = convert_to_newer(&KIND, &mut object)?;
        let mut job = Self::deserialize(object).map_err(|error| error.to_string())?;
        job.api_version = version;
        Ok(job)
    }
}

impl Parse for BroadcastJob {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_are_read_alike_and_null_is_the_default() {
        for version in ["v1alpha1", "v1beta1"] {
            let api_version = format!("apps.kruise.io/{version}");
            let job = BroadcastJob::from_value(json!({
                "apiVersion": api_version, "kind": "BroadcastJob", "metadata": {"name": "check"},
                "spec": {"parallelism": "20%", "paused": null, "failurePolicy": {"type": "Pause", "restartLimit": null},
                    "completionPolicy": {"type": "Never"}, "template": {"spec": {}}},
                "status": {"active": 1, "phase": null, "conditions": null, "startTime": "2026-01-01T00:00:00Z"},
            }))
            .unwrap();
            assert_eq!(job.api_version, api_version);
            assert_eq!(job.spec.parallelism, Some(IntOrString::String("20%".into())));
            assert!(job.spec.completion_policy.is_never() && !job.spec.paused);
            assert_eq!(
                (
                    &*job.spec.failure_policy.kind,
                    job.spec.failure_policy.restart_limit
                ),
                ("Pause", 0)
            );
            assert_eq!((job.status.active, &*job.status.phase), (1, ""));
        }
    }

    #[test]
    fn counts_and_phase_are_always_written() {
        let status = serde_json::to_value(BroadcastJobStatus::default()).unwrap();
        assert_eq!(
            status,
            json!({"active": 0, "succeeded": 0, "failed": 0, "desired": 0, "phase": ""})
        );
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| BroadcastJob::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "batch/v1"})).contains("batch/v1"));
        let wrong = json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {"parallelism": []}});
        assert!(error(wrong).contains("sequence"));
    }
}
