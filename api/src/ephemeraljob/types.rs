//! The fields.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::condition::JobCondition;
use crate::convert::require_older;
use crate::meta::{LabelSelector, ObjectMeta, null_as_default, whole_seconds};
use crate::parse::Parse;

/// An EphemeralJob as planners see it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EphemeralJob {
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: EphemeralJobSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: EphemeralJobStatus,
}

/// Which containers run in which pods, how many at a time, and until when.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EphemeralJobSpec {
    /// Which pods of the namespace; an empty one selects all.
    #[serde(deserialize_with = "null_as_default")]
    pub selector: LabelSelector,
    /// Most pods that get the containers; unset means all.
    pub replicas: Option<i32>,
    /// Most pods whose containers run at a time; unset means one.
    pub parallelism: Option<i32>,
    /// The containers.
    #[serde(deserialize_with = "null_as_default")]
    pub template: EphemeralTemplate,
    /// Add no more containers.
    #[serde(deserialize_with = "null_as_default")]
    pub paused: bool,
    /// Seconds after its start when the job fails.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after its end when the job is deleted; unset means half an hour.
    pub ttl_seconds_after_finished: Option<i32>,
}

/// What is added to each pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EphemeralTemplate {
    /// Containers as stored: unknown fields survive.
    #[serde(deserialize_with = "null_as_default")]
    pub ephemeral_containers: Vec<Value>,
}

impl EphemeralTemplate {
    /// Names of the containers, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let containers = self.ephemeral_containers.iter();
        containers.filter_map(|container| container.get("name")?.as_str())
    }
}

impl EphemeralJobSpec {
    /// [`Self::ttl_seconds_after_finished`] where it is not set.
    pub const TTL_SECONDS: i32 = 1800;

    /// Most pods whose containers run at a time.
    pub fn parallelism(&self) -> i32 {
        self.parallelism.unwrap_or(1)
    }

    /// Seconds after its end when the job is deleted.
    pub fn ttl_seconds(&self) -> i32 {
        self.ttl_seconds_after_finished.unwrap_or(Self::TTL_SECONDS)
    }
}

/// Reported state. Counts are of pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EphemeralJobStatus {
    /// Conditions.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<JobCondition>,
    /// When the controller first saw the job.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When the job ended.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// `Waiting`, `Running`, `Succeeded`, `Failed`, `Paused`, `Error` or `Unknown`; empty before the first report.
    #[serde(deserialize_with = "null_as_default")]
    pub phase: String,
    /// Pods that get the containers.
    #[serde(rename = "match")]
    pub matches: i32,
    /// Pods in which they run.
    pub running: i32,
    /// Pods in which all of them ended well.
    pub succeeded: i32,
    /// Pods in which they have yet to start.
    pub waiting: i32,
    /// Pods in which one of them failed.
    pub failed: i32,
}

impl EphemeralJob {
    /// Reads an object.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(object: Value) -> Result<Self, String> {
        require_older(&KIND, &object)?;
        Self::deserialize(object).map_err(|error| error.to_string())
    }
}

impl Parse for EphemeralJob {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_out_or_null_is_the_default() {
        let job = EphemeralJob::from_value(json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob", "metadata": {"name": "dump"},
            "spec": {"selector": {"matchLabels": {"app": "cart"}}, "paused": null, "replicas": null,
                "template": {"ephemeralContainers": [{"name": "a", "newField": 1}, {"name": "b"}]}},
            "status": {"match": 2, "phase": null, "conditions": null, "startTime": "2026-01-01T00:00:00Z"},
        }))
        .unwrap();
        let spec = &job.spec;
        assert_eq!(
            (spec.parallelism(), spec.ttl_seconds(), spec.replicas),
            (1, 1800, None)
        );
        assert_eq!(spec.template.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(spec.template.ephemeral_containers[0]["newField"], 1);
        assert_eq!(
            (job.status.matches, &*job.status.phase, spec.paused),
            (2, "", false)
        );
    }

    #[test]
    fn counts_and_phase_are_always_written() {
        let status = serde_json::to_value(EphemeralJobStatus::default()).unwrap();
        let expected =
            json!({"match": 0, "running": 0, "succeeded": 0, "waiting": 0, "failed": 0, "phase": ""});
        assert_eq!(status, expected);
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| EphemeralJob::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "batch/v1"})).contains("batch/v1"));
        let wrong = json!({"apiVersion": "apps.kruise.io/v1alpha1", "spec": {"replicas": []}});
        assert!(error(wrong).contains("sequence"));
    }
}
