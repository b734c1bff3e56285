//! A job that a schedule may have created: a `Job`, a `BroadcastJob` or an `ImageListPullJob`.

use jiff::Timestamp;
use kruise_api::{
    meta::{ObjectMeta, null_as_default},
    names::advancedcronjob::SCHEDULED_AT,
};
use serde::{Deserialize, Deserializer};

use crate::OwnerView;

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobEnd {
    /// Well.
    Complete,
    /// Badly.
    Failed,
}

/// Identity and owner of a job, the activation that it is for, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduledJobView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// The controlling owner.
    pub controller: Option<Box<OwnerView>>,
    /// The activation that it is for, a whole second; `None` if the annotation is missing or cannot be read.
    pub scheduled_at: Option<Timestamp>,
    /// When it started.
    pub started: Option<Timestamp>,
    /// How it ended: what its conditions `Complete` and `Failed` say, or, for a kind without them, its completion
    /// time and whether all that it wanted succeeded.
    pub end: Option<JobEnd>,
    /// Being deleted?
    pub deleting: bool,
}

kube_cache::cached!(ScheduledJobView; deleting);

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    start_time: Option<Timestamp>,
    completion_time: Option<Timestamp>,
    desired: Option<i64>,
    succeeded: Option<i64>,
    /// Only ImageListPullJobs have it, and they have no conditions.
    completed: Option<i64>,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Status {
    fn end(&self) -> Option<JobEnd> {
        let mut true_conditions = self
            .conditions
            .iter()
            .filter(|condition| condition.status == "True");
        let by_condition = true_conditions.find_map(|condition| match condition.kind.as_str() {
            "Complete" => Some(JobEnd::Complete),
            "Failed" => Some(JobEnd::Failed),
            _ => None,
        });
        let by_counts = || {
            self.completed?;
            self.completion_time?;
            let has_succeeded = self.succeeded.unwrap_or_default() == self.desired.unwrap_or_default();
            Some(if has_succeeded {
                JobEnd::Complete
            } else {
                JobEnd::Failed
            })
        };
        by_condition.or_else(by_counts)
    }
}

impl<'de> Deserialize<'de> for ScheduledJobView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata, status } = Wire::deserialize(deserializer)?;
        Ok(Self {
            controller: metadata.controller().map(OwnerView::boxed),
            scheduled_at: metadata
                .annotations
                .get(SCHEDULED_AT)
                .and_then(|text| text.parse::<Timestamp>().ok())
                .and_then(|time| Timestamp::from_second(time.as_second()).ok()),
            started: status.start_time,
            end: status.end(),
            deleting: metadata.deletion_timestamp.is_some(),
            namespace: metadata.namespace.into(),
            name: metadata.name.into(),
            uid: metadata.uid.into(),
            resource_version: metadata.resource_version.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{JobEnd, ScheduledJobView};

    fn ended(status: Value) -> Option<JobEnd> {
        let job: ScheduledJobView =
            serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap();
        job.end
    }

    #[test]
    fn every_field_a_planner_reads_is_decoded() {
        let job: ScheduledJobView = serde_json::from_str(
            r#"{"metadata":{"name":"n-1","namespace":"ops","uid":"u","resourceVersion":"7",
                "annotations":{"apps.kruise.io/scheduled-at":"2026-01-02T12:00:00.9+09:00"},
                "deletionTimestamp":"2026-01-02T04:00:00Z","ownerReferences":[
                {"apiVersion":"apps.kruise.io/v1alpha1","kind":"AdvancedCronJob","name":"n","uid":"ou","controller":true}]},
                "spec":{"parallelism":1},"status":{"startTime":"2026-01-02T03:00:01Z"}}"#,
        )
        .unwrap();
        let owner = job.controller.as_ref().map(|owner| (&*owner.group, &*owner.uid));
        assert_eq!(owner, Some(("apps.kruise.io", "ou")));
        assert_eq!(job.scheduled_at.unwrap().to_string(), "2026-01-02T03:00:00Z");
        assert_eq!(job.started.unwrap().to_string(), "2026-01-02T03:00:01Z");
        assert!(job.deleting && job.end.is_none());
        let unreadable =
            r#"{"metadata":{"annotations":{"apps.kruise.io/scheduled-at":"noon"}},"status":null}"#;
        let job: ScheduledJobView = serde_json::from_str(unreadable).unwrap();
        assert_eq!(job, ScheduledJobView::default());
    }

    #[test]
    fn an_end_is_read_from_conditions_or_from_the_counts_of_pulls() {
        let conditions = |kind: &str, status: &str| {
            ended(
                json!({"completionTime": "2026-01-02T03:00:00Z", "desired": 1, "succeeded": 1,
                "conditions": [{"type": "Suspended", "status": "True"}, {"type": kind, "status": status}]}),
            )
        };
        assert_eq!(conditions("Complete", "True"), Some(JobEnd::Complete));
        assert_eq!(conditions("Failed", "True"), Some(JobEnd::Failed));
        assert_eq!(conditions("Failed", "False"), None);
        let pulls = |succeeded, over: Option<&str>| {
            ended(
                json!({"desired": 2, "active": 0, "completed": 2, "succeeded": succeeded, "completionTime": over}),
            )
        };
        let over = Some("2026-01-02T03:00:00Z");
        assert_eq!(pulls(2, over), Some(JobEnd::Complete));
        assert_eq!(pulls(1, over), Some(JobEnd::Failed));
        assert_eq!(pulls(2, None), None);
        assert_eq!(ended(json!({"conditions": null})), None);
    }
}
