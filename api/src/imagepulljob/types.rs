//! The fields.

use go_compat::IntOrString;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::convert::convert_to_newer;
use crate::meta::{LabelSelector, ObjectMeta, null_as_default, whole_seconds};
use crate::parse::Parse;

/// An ImagePullJob as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImagePullJob {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: ImagePullJobSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: ImagePullJobStatus,
    /// The specification as it is stored, for comparisons with what created the job.
    #[serde(skip)]
    pub stored_spec: Value,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImagePullJobSpec {
    /// The image.
    #[serde(deserialize_with = "null_as_default")]
    pub image: String,
    /// How many nodes pull at a time; unset means one.
    pub parallelism: Option<IntOrString>,
    /// Which nodes pull; unset means all.
    pub selector: Option<NodeSelector>,
    /// The nodes of which pods pull.
    pub pod_selector: Option<LabelSelector>,
    /// Names of secrets in the namespace of the job.
    #[serde(deserialize_with = "null_as_default")]
    pub pull_secrets: Vec<String>,
    /// How one pull is made.
    #[serde(deserialize_with = "null_as_default")]
    pub pull_policy: PullPolicy,
    /// `Always` or `IfNotPresent`.
    #[serde(deserialize_with = "null_as_default")]
    pub image_pull_policy: String,
    /// Labels and annotations for the runtime, as stored.
    pub sandbox_config: Option<Value>,
    /// When the job ends, and what becomes of it.
    #[serde(deserialize_with = "null_as_default")]
    pub completion_policy: CompletionPolicy,
}

/// Which nodes pull: by names, or by the labels of their NodeImages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeSelector {
    /// Names of nodes. An empty list selects none; without the list labels count.
    pub names: Option<Vec<String>>,
    /// Labels. Without requirements all nodes match.
    #[serde(flatten)]
    pub labels: LabelSelector,
}

/// How one pull is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PullPolicy {
    /// Seconds that one attempt may take; unset means 600.
    pub timeout_seconds: Option<i32>,
    /// Attempts after the first one; unset means 3.
    pub backoff_limit: Option<i32>,
}

impl PullPolicy {
    /// Seconds that one attempt may take.
    pub fn timeout(&self) -> i32 {
        self.timeout_seconds.unwrap_or(600)
    }

    /// Attempts after the first one.
    pub fn retries(&self) -> i32 {
        self.backoff_limit.unwrap_or(3)
    }
}

/// When a job ends, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompletionPolicy {
    /// `Always` (default) or `Never`.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
    /// Seconds after its start when the job ends.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after its end when the job is deleted.
    pub ttl_seconds_after_finished: Option<i32>,
}

impl CompletionPolicy {
    /// Does the job continue when all its nodes have pulled?
    pub fn is_never(&self) -> bool {
        self.kind == "Never"
    }
}

/// Reported state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImagePullJobStatus {
    /// When the controller first saw the job.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When the job ended.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// Nodes of the job.
    #[serde(deserialize_with = "null_as_default")]
    pub desired: i32,
    /// Nodes that are to pull now.
    #[serde(deserialize_with = "null_as_default")]
    pub active: i32,
    /// Nodes that have the image.
    #[serde(deserialize_with = "null_as_default")]
    pub succeeded: i32,
    /// Nodes that could not pull it.
    #[serde(deserialize_with = "null_as_default")]
    pub failed: i32,
    /// Progress, in a sentence.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub message: String,
    /// Names of the nodes that could not pull it, sorted.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub failed_nodes: Vec<String>,
}

impl ImagePullJob {
    /// Reads an object of either version. `api_version` stays that of the object.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(mut object: Value) -> Result<Self, String> {
        let version = convert_to_newer(&KIND, &mut object)?;
        let stored_spec = object.get("spec").cloned().unwrap_or_default();
        let mut job = Self::deserialize(object).map_err(|error| error.to_string())?;
        (job.api_version, job.stored_spec) = (version, stored_spec);
        Ok(job)
    }

    /// Is it neither ended nor being deleted?
    pub fn is_active(&self) -> bool {
        self.status.completion_time.is_none() && self.metadata.deletion_timestamp.is_none()
    }
}

impl Parse for ImagePullJob {
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
            let job = ImagePullJob::from_value(json!({
                "apiVersion": api_version, "kind": "ImagePullJob", "metadata": {"name": "warm"},
                "spec": {"image": "web:1", "parallelism": "2", "selector": {"matchLabels": {"pool": "web"}},
                    "pullPolicy": null, "completionPolicy": {"type": "Never"}},
                "status": {"desired": 3, "active": null, "failedNodes": null, "startTime": "2026-01-01T00:00:00Z"},
            }))
            .unwrap();
            assert_eq!(job.api_version, api_version);
            assert_eq!(job.spec.parallelism, Some(IntOrString::String("2".into())));
            let selector = job.spec.selector.as_ref().unwrap();
            assert_eq!((&selector.names, selector.labels.match_labels.len()), (&None, 1));
            assert_eq!(
                (job.spec.pull_policy.timeout(), job.spec.pull_policy.retries()),
                (600, 3)
            );
            assert!(job.spec.completion_policy.is_never() && job.is_active());
            assert_eq!((job.status.desired, job.status.active), (3, 0));
            assert_eq!(job.stored_spec["image"], "web:1");
        }
    }

    #[test]
    fn counts_are_always_written() {
        let status = serde_json::to_value(ImagePullJobStatus::default()).unwrap();
        assert_eq!(
            status,
            json!({"active": 0, "succeeded": 0, "failed": 0, "desired": 0})
        );
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| ImagePullJob::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "batch/v1"})).contains("batch/v1"));
        let wrong = json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {"image": []}});
        assert!(error(wrong).contains("sequence"));
    }
}
