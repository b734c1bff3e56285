//! The fields.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::convert::convert_to_newer;
use crate::imagepulljob::CompletionPolicy;
use crate::meta::{ObjectMeta, null_as_default, whole_seconds};
use crate::parse::Parse;

/// An ImageListPullJob as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageListPullJob {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: ImageListPullJobSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: ImageListPullJobStatus,
    /// The specification as it is stored. All of it but the images is the template of the created jobs.
    #[serde(skip)]
    pub stored_spec: Value,
}

/// Desired state: what the controller reads of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageListPullJobSpec {
    /// The images.
    #[serde(deserialize_with = "null_as_default")]
    pub images: Vec<String>,
    /// When the job ends, and what becomes of it.
    #[serde(deserialize_with = "null_as_default")]
    pub completion_policy: CompletionPolicy,
}

/// Reported state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageListPullJobStatus {
    /// When the controller first saw the job.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When the job ended.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// Images.
    #[serde(deserialize_with = "null_as_default")]
    pub desired: i32,
    /// Images that some node is pulling.
    #[serde(deserialize_with = "null_as_default")]
    pub active: i32,
    /// Images that every node has pulled or failed to.
    #[serde(deserialize_with = "null_as_default")]
    pub completed: i32,
    /// Images that every node has pulled.
    #[serde(deserialize_with = "null_as_default")]
    pub succeeded: i32,
    /// Images that some nodes could not pull, sorted by image.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub failed_image_statuses: Vec<FailedImage>,
}

/// An image that some nodes could not pull.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailedImage {
    /// The job that pulled it.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub image_pull_job: String,
    /// The image.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub name: String,
    /// Where the failed nodes are named.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub message: String,
}

impl ImageListPullJob {
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
}

impl Parse for ImageListPullJob {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_are_read_alike_and_the_template_is_kept() {
        for version in ["v1alpha1", "v1beta1"] {
            let api_version = format!("apps.kruise.io/{version}");
            let job = ImageListPullJob::from_value(json!({
                "apiVersion": api_version, "kind": "ImageListPullJob", "metadata": {"name": "warm"},
                "spec": {"images": ["web:1", "db:2"], "parallelism": 5, "newer": 1,
                    "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 60}},
                "status": {"desired": 2, "failedImageStatuses": [{"name": "web:1", "imagePullJob": "warm-x"}]},
            }))
            .unwrap();
            assert_eq!((&*job.api_version, job.spec.images.len()), (&*api_version, 2));
            assert_eq!(job.spec.completion_policy.ttl_seconds_after_finished, Some(60));
            assert_eq!(job.status.failed_image_statuses[0].image_pull_job, "warm-x");
            assert_eq!(job.stored_spec["newer"], 1);
        }
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| ImageListPullJob::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "batch/v1"})).contains("batch/v1"));
        let wrong = json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {"images": 1}});
        assert!(error(wrong).contains("integer"));
    }
}
