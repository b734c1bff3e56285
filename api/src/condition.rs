//! Conditions as workloads and jobs report them: those of Kubernetes, and when each was last confirmed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::meta::{null_as_default, whole_seconds};

/// One condition of a workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Its type, such as `Progressing`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When the condition was last confirmed or changed.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// When `status` last changed.
    #[serde(serialize_with = "whole_seconds")]
    pub last_transition_time: Option<Timestamp>,
    /// One word for machines.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub reason: String,
    /// A sentence for people.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub message: String,
}

/// One condition of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobCondition {
    /// Its type, such as `Complete`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When the condition was last looked at.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Timestamp>,
    /// When `status` last changed.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// One word for machines.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub reason: String,
    /// A sentence for people.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub message: String,
}

impl JobCondition {
    /// Is it True?
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, JobCondition};

    #[test]
    fn times_are_written_in_whole_seconds() {
        let now = "2026-01-02T03:04:05.678901234Z".parse().ok();
        let condition = Condition {
            last_update_time: now,
            last_transition_time: now,
            ..Condition::default()
        };
        let of_job = JobCondition {
            last_probe_time: now,
            last_transition_time: now,
            ..JobCondition::default()
        };
        let texts = [serde_json::to_string(&condition), serde_json::to_string(&of_job)];
        for text in texts.map(Result::unwrap) {
            assert_eq!(text.matches("\"2026-01-02T03:04:05Z\"").count(), 2, "{text}");
        }
    }
}
