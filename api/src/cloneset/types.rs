//! The fields of `v1beta1`.

use go_compat::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::lifecycle::Lifecycle;
use crate::meta::{LabelSelector, ObjectMeta, null_as_default};
use crate::priority::PriorityStrategy;
use crate::scatter::ScatterTerm;

/// A CloneSet as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CloneSet {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: CloneSetSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: CloneSetStatus,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CloneSetSpec {
    /// Desired number of pods; default 1.
    pub replicas: Option<i32>,
    /// Selects the pods of this CloneSet.
    pub selector: LabelSelector,
    /// Template of the pods, as stored: unknown fields survive.
    pub template: Value,
    /// Templates of the claims of each pod, as stored.
    #[serde(deserialize_with = "null_as_default")]
    pub volume_claim_templates: Vec<Value>,
    /// How pods are added and removed.
    #[serde(deserialize_with = "null_as_default")]
    pub scale_strategy: ScaleStrategy,
    /// How pods are updated.
    #[serde(deserialize_with = "null_as_default")]
    pub update_strategy: UpdateStrategy,
    /// Unused revisions kept; default 10.
    pub revision_history_limit: Option<i32>,
    /// Seconds a pod must be Ready before it counts as available; default 0.
    #[serde(deserialize_with = "null_as_default")]
    pub min_ready_seconds: i32,
    /// Lifecycle hooks.
    pub lifecycle: Option<Lifecycle>,
    /// Seconds without progress before `Progressing` turns False; unset or 2147483647 means never.
    pub progress_deadline_seconds: Option<i32>,
}

/// How pods are added and removed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleStrategy {
    /// Names of pods to delete before all others.
    #[serde(deserialize_with = "null_as_default")]
    pub pods_to_delete: Vec<String>,
    /// Most pods that may be unavailable while scaling up; unset means no limit.
    pub max_unavailable: Option<IntOrString>,
    /// Give instance ids and claims of deleted pods to new pods; default false.
    #[serde(rename = "enablePVCReuse", deserialize_with = "null_as_default")]
    pub enable_pvc_reuse: bool,
    /// Do not count pods in `PreparingDelete` as replicas; default false.
    #[serde(deserialize_with = "null_as_default")]
    pub exclude_preparing_delete: bool,
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
    /// `ReCreate` (default), `InPlaceIfPossible` or `InPlaceOnly`.
    #[serde(deserialize_with = "null_as_default")]
    pub pod_update_policy: String,
    /// Number or percentage of pods kept on old revisions; default 0.
    pub partition: Option<IntOrString>,
    /// Most pods that may be unavailable during the update; default 20 %.
    pub max_unavailable: Option<IntOrString>,
    /// Most pods above `replicas` during the update; default 0.
    pub max_surge: Option<IntOrString>,
    /// Stop updating; scaling continues.
    #[serde(deserialize_with = "null_as_default")]
    pub paused: bool,
    /// Which pods update first.
    pub priority_strategy: Option<PriorityStrategy>,
    /// Labels whose pods should not update one after another.
    #[serde(deserialize_with = "null_as_default")]
    pub scatter_strategy: Vec<ScatterTerm>,
    /// Parameters of in-place updates.
    pub in_place_update_strategy: Option<InPlaceUpdateStrategy>,
}

/// Parameters of in-place updates.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InPlaceUpdateStrategy {
    /// Seconds between marking a pod not ready and changing it; default 0.
    #[serde(deserialize_with = "null_as_default")]
    pub grace_period_seconds: i32,
    /// Nodes that pull the new image at once, ahead of the update.
    pub image_pre_download_parallelism: Option<IntOrString>,
    /// Seconds one pull may take.
    pub image_pre_download_timeout_seconds: Option<i32>,
    /// Updated and ready pods needed before images are pulled ahead.
    pub image_pre_download_min_updated_ready_pods: Option<i32>,
}

/// Reported state; the same in both versions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CloneSetStatus {
    /// Generation the counts belong to.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Active pods.
    pub replicas: i32,
    /// Running, Ready and not in the middle of an in-place update.
    pub ready_replicas: i32,
    /// Ready for longer than `minReadySeconds`.
    pub available_replicas: i32,
    /// Active pods of the update revision.
    pub updated_replicas: i32,
    /// Ready pods of the update revision.
    pub updated_ready_replicas: i32,
    /// Available pods of the update revision. Absent if there are none, as OpenKruise has it.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_available_replicas: i32,
    /// `replicas` less the partition. Absent for zero, as OpenKruise has it.
    #[serde(skip_serializing_if = "is_zero")]
    pub expected_updated_replicas: i32,
    /// Name of the revision being rolled out.
    pub update_revision: String,
    /// Name of the revision last fully rolled out.
    pub current_revision: String,
    /// Revision name collisions so far.
    pub collision_count: Option<i32>,
    /// Conditions.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The selector as text, for autoscalers.
    pub label_selector: String,
}

// Serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
