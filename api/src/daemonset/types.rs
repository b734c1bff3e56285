//! The fields of `v1beta1`.

use go_compat::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::condition::Condition;
use crate::convert::convert_to_newer;
use crate::lifecycle::Lifecycle;
use crate::meta::{LabelSelector, ObjectMeta, null_as_default};
use crate::parse::Parse;

/// A DaemonSet as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSet {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: DaemonSetSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: DaemonSetStatus,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetSpec {
    /// Selects the pods of this DaemonSet.
    pub selector: LabelSelector,
    /// Template of the pods, as stored: unknown fields survive.
    pub template: Value,
    /// Seconds that a pod must be Ready before it counts as available; default 0.
    #[serde(deserialize_with = "null_as_default")]
    pub min_ready_seconds: i32,
    /// Most pods created, deleted or updated at a time, or percent of nodes; default 250.
    pub burst_replicas: Option<IntOrString>,
    /// Unused revisions kept; default 10.
    pub revision_history_limit: Option<i32>,
    /// Lifecycle hooks; only `preDelete` is heeded.
    pub lifecycle: Option<Lifecycle>,
    /// How pods are created.
    #[serde(deserialize_with = "null_as_default")]
    pub scale_strategy: ScaleStrategy,
    /// How pods are updated.
    #[serde(deserialize_with = "null_as_default")]
    pub update_strategy: UpdateStrategy,
}

/// How pods are created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleStrategy {
    /// Create the first pods in parts, too, according to the partition; default false.
    #[serde(deserialize_with = "null_as_default")]
    pub partitioned_scaling: bool,
}

/// How pods are updated.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// `RollingUpdate` (default) or `OnDelete`.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
    /// Parameters of `RollingUpdate`.
    pub rolling_update: Option<RollingUpdate>,
}

/// Parameters of a rolling update.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// `Standard` (default) or `InPlaceIfPossible`.
    #[serde(rename = "rollingUpdateType", deserialize_with = "null_as_default")]
    pub kind: String,
    /// Most nodes, or percent of them, without an available pod; default 1.
    pub max_unavailable: Option<IntOrString>,
    /// Most nodes, or percent of them, with an old and a new pod; default 0.
    pub max_surge: Option<IntOrString>,
    /// Labels of the only nodes whose pods are updated; unset means every node.
    pub selector: Option<LabelSelector>,
    /// Number of pods, or percent of nodes, kept on old revisions; default 0.
    pub partition: Option<IntOrString>,
    /// Stop updating pods; nodes without one get one all the same.
    #[serde(deserialize_with = "null_as_default")]
    pub paused: bool,
}

/// Reported state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStatus {
    /// Nodes that should have a pod and have one, whatever its state.
    pub current_number_scheduled: i32,
    /// Other nodes that have a pod nevertheless.
    pub number_misscheduled: i32,
    /// Nodes that should have a pod.
    pub desired_number_scheduled: i32,
    /// Those of them whose pod is Ready.
    pub number_ready: i32,
    /// Generation the counts belong to.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Nodes whose pod is of the newest revision.
    pub updated_number_scheduled: i32,
    /// Nodes whose pod is available.
    #[serde(skip_serializing_if = "is_zero")]
    pub number_available: i32,
    /// Nodes that lack an available pod.
    #[serde(skip_serializing_if = "is_zero")]
    pub number_unavailable: i32,
    /// Revision name collisions so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Conditions.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Hash of the revision that is being rolled out.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub update_revision: String,
}

impl DaemonSet {
    /// Reads an object of either version. `api_version` stays that of the object.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(mut object: Value) -> Result<Self, String> {
        let version = convert_to_newer(&KIND, &mut object)?;
        let mut set = Self::deserialize(object).map_err(|error| error.to_string())?;
        set.api_version = version;
        Ok(set)
    }
}

// Serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

impl Parse for DaemonSet {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_older_version_reads_as_the_hub() {
        let older = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "DaemonSet",
            "metadata": {"name": "agent", "annotations": {"daemonset.kruise.io/progressive-create-pod": "true"}},
            "spec": {"burstReplicas": "10%", "lifecycle": null, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "rollingUpdateType": "Surging", "maxSurge": 1, "maxUnavailable": 0, "paused": null, "partition": "20%"}}},
            "status": {"daemonSetHash": "h", "desiredNumberScheduled": 3},
        });
        let set = DaemonSet::from_value(older).unwrap();
        assert_eq!(set.api_version, "apps.kruise.io/v1alpha1");
        let rolling = RollingUpdate {
            kind: "Standard".into(),
            max_surge: Some(IntOrString::Int(1)),
            max_unavailable: Some(IntOrString::Int(0)),
            partition: Some(IntOrString::String("20%".into())),
            ..RollingUpdate::default()
        };
        assert_eq!(set.spec.update_strategy.rolling_update, Some(rolling));
        assert_eq!(set.spec.burst_replicas, Some(IntOrString::String("10%".into())));
        assert!(set.spec.scale_strategy.partitioned_scaling);
        assert_eq!(
            (&*set.status.update_revision, set.status.desired_number_scheduled),
            ("h", 3)
        );
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| DaemonSet::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "apps/v1"})).contains("apps/v1"));
        let wrong = json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {"minReadySeconds": "three"}});
        assert!(error(wrong).contains("three"));
    }
}
