//! The fields of `v1beta1`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::advancedcronjob::KIND;
use crate::convert::convert_to_newer;
use crate::meta::{ObjectMeta, StringMap, null_as_default, whole_seconds};
use crate::parse::Parse;

/// An AdvancedCronJob as planners see it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AdvancedCronJob {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: AdvancedCronJobSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: AdvancedCronJobStatus,
}

/// Which jobs are created when, and how many old ones are kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AdvancedCronJobSpec {
    /// Five fields of cron, or a descriptor; a time zone may precede them.
    pub schedule: String,
    /// Time zone of the schedule.
    pub time_zone: Option<String>,
    /// Seconds that a job may be late.
    pub starting_deadline_seconds: Option<i64>,
    /// What happens while a job runs; see [`AdvancedCronJobSpec::concurrency`].
    #[serde(deserialize_with = "null_as_default")]
    pub concurrency_policy: String,
    /// No new jobs.
    #[serde(deserialize_with = "null_as_default")]
    pub paused: bool,
    /// Jobs that ended well to keep; all, if not set.
    pub successful_jobs_history_limit: Option<i32>,
    /// Jobs that failed to keep; all, if not set.
    pub failed_jobs_history_limit: Option<i32>,
    /// What is created.
    #[serde(deserialize_with = "null_as_default")]
    pub template: JobTemplates,
}

/// One template of three.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobTemplates {
    /// A Job of `batch/v1`.
    pub job_template: Option<JobTemplate>,
    /// An ImageListPullJob.
    pub image_list_pull_job_template: Option<JobTemplate>,
    /// A BroadcastJob.
    pub broadcast_job_template: Option<JobTemplate>,
}

/// Labels, annotations and specification of created jobs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobTemplate {
    /// Of its metadata, labels and annotations are copied.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: TemplateMeta,
    /// The specification, as it is written.
    pub spec: Value,
}

/// What is copied of a template's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TemplateMeta {
    /// Labels.
    #[serde(deserialize_with = "null_as_default")]
    pub labels: StringMap,
    /// Annotations.
    #[serde(deserialize_with = "null_as_default")]
    pub annotations: StringMap,
}

/// The kind of the created jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// Job of `batch/v1`.
    Job,
    /// ImageListPullJob.
    ImageListPullJob,
    /// BroadcastJob.
    BroadcastJob,
}

impl Child {
    /// The name of the kind.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::ImageListPullJob => "ImageListPullJob",
            Self::BroadcastJob => "BroadcastJob",
        }
    }

    /// The newest `apiVersion` of the kind.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Job => "batch/v1",
            Self::ImageListPullJob | Self::BroadcastJob => "apps.kruise.io/v1beta1",
        }
    }
}

/// What happens when a job is due while another one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// Both run.
    Allow,
    /// The new one waits until the other one has ended.
    Forbid,
    /// The other one is deleted.
    Replace,
}

impl JobTemplates {
    /// The template, and the kind that it is of.
    pub fn child(&self) -> Option<(Child, &JobTemplate)> {
        let all = [
            (Child::Job, &self.job_template),
            (Child::ImageListPullJob, &self.image_list_pull_job_template),
            (Child::BroadcastJob, &self.broadcast_job_template),
        ];
        all.into_iter()
            .find_map(|(child, template)| Some((child, template.as_ref()?)))
    }
}

impl AdvancedCronJobSpec {
    /// The policy. One that is unknown allows.
    pub fn concurrency(&self) -> Concurrency {
        match self.concurrency_policy.as_str() {
            "Forbid" => Concurrency::Forbid,
            "Replace" => Concurrency::Replace,
            _ => Concurrency::Allow,
        }
    }
}

/// What the schedule has created.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AdvancedCronJobStatus {
    /// Kind of the created jobs.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// References to jobs that have not ended.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ActiveJob>,
    /// The newest activation for which a job was created. It never moves back.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Timestamp>,
}

/// A reference to a job that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActiveJob {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its version when it was first seen.
    pub resource_version: String,
}

impl AdvancedCronJob {
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

impl Parse for AdvancedCronJob {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::convert::convert_as;

    fn stored() -> Value {
        json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob",
            "metadata": {"name": "nightly", "namespace": "ops"},
            "spec": {
                "schedule": "0 2 * * *", "timeZone": "Europe/Oslo", "concurrencyPolicy": "Forbid", "paused": null,
                "template": {"imageListPullJobTemplate": {
                    "metadata": {"labels": {"a": "b"}, "creationTimestamp": null}, "spec": {"images": ["web:1"]}}},
            },
            "status": {"type": "ImageListPullJob", "active": null, "lastScheduleTime": "2026-01-02T03:04:05Z"},
        })
    }

    #[test]
    fn the_older_version_reads_as_the_newer_images_included() {
        let newer = AdvancedCronJob::from_value(stored()).unwrap();
        let mut older = stored();
        convert_as(&KIND, &mut older, "apps.kruise.io/v1alpha1").unwrap();
        assert_eq!(older["spec"]["template"], json!({}));
        let older = AdvancedCronJob::from_value(older).unwrap();
        assert_eq!((&older.spec, &older.status), (&newer.spec, &newer.status));
        let (child, template) = older.spec.template.child().unwrap();
        assert_eq!(
            (child, &template.spec["images"][0]),
            (Child::ImageListPullJob, &json!("web:1"))
        );
        assert_eq!(older.spec.concurrency(), Concurrency::Forbid);
    }

    #[test]
    fn a_status_is_written_without_what_is_empty_and_in_whole_seconds() {
        let mut status = AdvancedCronJob::from_value(stored()).unwrap().status;
        let written = json!({"type": "ImageListPullJob", "lastScheduleTime": "2026-01-02T03:04:05Z"});
        assert_eq!(serde_json::to_value(&status).unwrap(), written);
        status.last_schedule_time = Some("2026-01-02T03:04:05.6Z".parse().unwrap());
        assert_eq!(serde_json::to_value(&status).unwrap(), written);
        let none = serde_json::to_value(AdvancedCronJobStatus::default()).unwrap();
        assert_eq!(none, json!({}));
    }
}
