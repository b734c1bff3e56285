//! The fields.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::convert::convert_to_newer;
use crate::meta::{ObjectMeta, null_as_default};
use crate::names::conditions::PRE_RECREATE_GRACE;
use crate::parse::Parse;

/// A ContainerRecreateRequest as planners see it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerRecreateRequest {
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Which containers are restarted, and how.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ContainerRecreateRequestSpec,
    /// Progress, as controller and agent report it.
    #[serde(deserialize_with = "null_as_default")]
    pub status: ContainerRecreateRequestStatus,
}

/// Which containers of which pod are restarted, and how. It does not change.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerRecreateRequestSpec {
    /// Name of the pod.
    #[serde(deserialize_with = "null_as_default")]
    pub pod_name: String,
    /// The containers, in the order in which they are restarted.
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<RequestedContainer>,
    /// How they are restarted.
    #[serde(deserialize_with = "null_as_default")]
    pub strategy: Strategy,
    /// Seconds after its creation when the request ends; unset means never.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after its end when the request is deleted; unset means never.
    pub ttl_seconds_after_finished: Option<i64>,
}

/// A container that is restarted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestedContainer {
    /// Its name in the pod.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// Which run of it there was when the request was created.
    pub status_context: Option<StatusContext>,
}

/// A run of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusContext {
    /// Its identity, with its runtime.
    #[serde(rename = "containerID", deserialize_with = "null_as_default")]
    pub container_id: String,
    /// Restarts before it.
    #[serde(deserialize_with = "null_as_default")]
    pub restart_count: i32,
}

/// How containers are restarted: what the controller reads of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// Each container waits until the one before it has succeeded.
    #[serde(deserialize_with = "null_as_default")]
    pub ordered_recreate: bool,
    /// Seconds that the pod is out of service before its containers are stopped; unset means not at all.
    pub unready_grace_period_seconds: Option<i64>,
    /// Seconds that a new container must have run before it counts.
    #[serde(deserialize_with = "null_as_default")]
    pub min_started_seconds: i64,
}

/// Progress of a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerRecreateRequestStatus {
    /// `Pending`, `Recreating` or `Completed`; empty until the agent has reported.
    #[serde(deserialize_with = "null_as_default")]
    pub phase: String,
    /// When the request ended.
    pub completion_time: Option<Timestamp>,
    /// How it ended; empty if each container was dealt with.
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    /// Progress of each container, as the agent reports it.
    #[serde(deserialize_with = "null_as_default")]
    pub container_recreate_states: Vec<RecreateState>,
    /// The requested containers as they run since the request was created, for the agent.
    #[serde(deserialize_with = "null_as_default")]
    pub container_status_snapshot: Vec<SnapshotEntry>,
    /// Conditions as stored: fields that this build does not know survive.
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<Value>,
}

/// Progress of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecreateState {
    /// Name of the container.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// `Pending`, `Recreating`, `Succeeded` or `Failed`.
    #[serde(deserialize_with = "null_as_default")]
    pub phase: String,
    /// Explanation of the phase; may be empty.
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    /// Has the agent stopped the container?
    #[serde(deserialize_with = "null_as_default")]
    pub is_killed: bool,
}

/// A container that runs, as the pod reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotEntry {
    /// Name of the container.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// Is it ready?
    #[serde(deserialize_with = "null_as_default")]
    pub ready: bool,
    /// Restarts so far.
    #[serde(deserialize_with = "null_as_default")]
    pub restart_count: i32,
    /// Its identity, with its runtime.
    #[serde(
        rename = "containerID",
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub container_id: String,
}

/// Phases of a request and of its containers.
pub mod phase {
    /// The request or the container waits for its turn.
    pub const PENDING: &str = "Pending";
    /// It is being dealt with.
    pub const RECREATING: &str = "Recreating";
    /// A container runs anew.
    pub const SUCCEEDED: &str = "Succeeded";
    /// A container could not be stopped.
    pub const FAILED: &str = "Failed";
    /// The request has ended, well or badly.
    pub const COMPLETED: &str = "Completed";
}

impl ContainerRecreateRequest {
    /// Reads an object of any served version. The annotations of the older one become fields of the status.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(mut object: Value) -> Result<Self, String> {
        convert_to_newer(&KIND, &mut object)?;
        Self::deserialize(object).map_err(|error| error.to_string())
    }

    /// Has it ended?
    pub fn has_ended(&self) -> bool {
        self.status.completion_time.is_some() || self.status.phase == phase::COMPLETED
    }
}

impl ContainerRecreateRequestStatus {
    /// The condition which says since when the pod is out of service for the request, if it is True.
    pub fn grace(&self) -> Option<&Value> {
        let is = |condition: &Value, name: &str, wanted: &str| {
            condition.get(name).and_then(Value::as_str) == Some(wanted)
        };
        let mut conditions = self.conditions.iter();
        conditions
            .find(|condition| is(condition, "type", PRE_RECREATE_GRACE) && is(condition, "status", "True"))
    }

    /// Since when the pod is out of service for the request, if a True condition says so.
    pub fn unready_since(&self) -> Option<Timestamp> {
        self.grace()?.get("lastTransitionTime")?.as_str()?.parse().ok()
    }
}

impl Parse for ContainerRecreateRequest {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_out_or_null_is_the_default_and_conditions_stay_as_stored() {
        let request = ContainerRecreateRequest::from_value(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest", "metadata": {"name": "restart"},
            "spec": {"podName": "cart-0", "strategy": null, "ttlSecondsAfterFinished": null,
                "containers": [{"name": "app", "preStop": {}, "statusContext": {"containerID": "containerd://a"}}]},
            "status": {"phase": null, "containerRecreateStates": [{"name": "app", "isKilled": null}],
                "conditions": [{"type": "Other", "newField": 1}]},
        }))
        .unwrap();
        let (spec, status) = (&request.spec, &request.status);
        assert_eq!((&*spec.pod_name, &*spec.containers[0].name), ("cart-0", "app"));
        assert_eq!(
            (&spec.strategy, spec.ttl_seconds_after_finished),
            (&Strategy::default(), None)
        );
        assert!(status.phase.is_empty() && !status.container_recreate_states[0].is_killed);
        assert_eq!(status.conditions[0]["newField"], 1);
        assert!(!request.has_ended() && status.grace().is_none());
    }

    #[test]
    fn annotations_of_the_older_version_are_read_as_fields() {
        let entries = r#"[{"name":"app","ready":true,"restartCount":1,"containerID":"containerd://b"}]"#;
        let older = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequest",
            "metadata": {"name": "restart", "annotations": {
                "crr.apps.kruise.io/sync-container-statuses": entries,
                "crr.apps.kruise.io/unready-acquired": "2026-01-01T00:00:05Z"}},
            "spec": {"podName": "cart-0", "containers": []}, "status": {"phase": "Recreating"},
        });
        let status = ContainerRecreateRequest::from_value(older).unwrap().status;
        let expected = SnapshotEntry {
            name: "app".into(),
            ready: true,
            restart_count: 1,
            container_id: "containerd://b".into(),
        };
        assert_eq!(
            serde_json::to_string(std::slice::from_ref(&expected)).unwrap(),
            entries
        );
        assert_eq!(status.container_status_snapshot, [expected]);
        assert_eq!(
            status.unready_since(),
            Some("2026-01-01T00:00:05Z".parse().unwrap())
        );
    }

    #[test]
    fn only_a_true_condition_says_that_the_pod_is_out_of_service() {
        let status = |status: &str| ContainerRecreateRequestStatus {
            conditions: vec![
                json!({"type": "PreRecreateGrace", "status": status, "lastTransitionTime": "soon"}),
            ],
            ..ContainerRecreateRequestStatus::default()
        };
        assert!(status("False").grace().is_none() && status("Unknown").grace().is_none());
        assert!(status("True").grace().is_some(), "whatever its time is");
        assert_eq!(status("True").unready_since(), None);
    }

    #[test]
    fn a_request_has_ended_with_a_time_or_its_last_phase() {
        let ended = |status: Value| {
            let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "status": status});
            ContainerRecreateRequest::from_value(object).unwrap().has_ended()
        };
        assert!(ended(json!({"phase": "Completed"})));
        assert!(ended(
            json!({"phase": "Recreating", "completionTime": "2026-01-01T00:00:00Z"})
        ));
        assert!(!ended(json!({"phase": "Succeeded"})) && !ended(json!({})));
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| ContainerRecreateRequest::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "v1"})).contains("v1"));
        let wrong = json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {"containers": "app"}});
        assert!(error(wrong).contains("sequence"));
    }
}
