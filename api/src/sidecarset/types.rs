//! The fields of `v1beta1` that planners read.

use go_compat::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cloneset::convert::V1BETA1;
use crate::convert::{ConvertError, convert_as};
use crate::meta::{LabelSelector, ObjectMeta, StringMap, null_as_default};
use crate::priority::PriorityStrategy;
use crate::scatter::ScatterTerm;

/// A SidecarSet as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarSet {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: SidecarSetSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: SidecarSetStatus,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarSetSpec {
    /// Pods that are injected.
    pub selector: Option<LabelSelector>,
    /// Namespaces whose pods are injected; unset means all.
    pub namespace_selector: Option<LabelSelector>,
    /// Name given to the newest revision.
    #[serde(deserialize_with = "null_as_default")]
    pub custom_version: String,
    /// Init containers, as stored: unknown fields survive.
    #[serde(deserialize_with = "null_as_default")]
    pub init_containers: Vec<Value>,
    /// Containers, as stored.
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<Value>,
    /// Volumes, as stored.
    #[serde(deserialize_with = "null_as_default")]
    pub volumes: Vec<Value>,
    /// Secrets to pull images with, as stored.
    #[serde(deserialize_with = "null_as_default")]
    pub image_pull_secrets: Vec<Value>,
    /// Annotations for injected pods.
    #[serde(deserialize_with = "null_as_default")]
    pub patch_pod_metadata: Vec<MetadataPatch>,
    /// How new pods are injected.
    #[serde(deserialize_with = "null_as_default")]
    pub injection_strategy: InjectionStrategy,
    /// How injected pods are updated.
    #[serde(deserialize_with = "null_as_default")]
    pub update_strategy: SidecarSetUpdateStrategy,
    /// Revisions kept; default 10.
    pub revision_history_limit: Option<i32>,
}

/// Annotations for pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetadataPatch {
    /// The annotations.
    #[serde(deserialize_with = "null_as_default")]
    pub annotations: StringMap,
    /// `Retain` (default), `Overwrite` or `MergePatchJson`.
    #[serde(deserialize_with = "null_as_default")]
    pub patch_policy: String,
}

/// How new pods are injected.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InjectionStrategy {
    /// Inject nothing.
    #[serde(deserialize_with = "null_as_default")]
    pub paused: bool,
    /// Inject this revision instead of the newest.
    pub revision: Option<InjectionRevision>,
}

/// A revision, by the name of its object or by its custom version.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InjectionRevision {
    /// Name of the ControllerRevision; wins over `custom_version`.
    pub revision_name: Option<String>,
    /// Custom version of the revision.
    pub custom_version: Option<String>,
    /// `Always` (default) or `Partial`.
    #[serde(deserialize_with = "null_as_default")]
    pub policy: String,
}

/// How injected pods are updated.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarSetUpdateStrategy {
    /// `RollingUpdate` (default) or `NotUpdate`.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
    /// Stop updating.
    #[serde(deserialize_with = "null_as_default")]
    pub paused: bool,
    /// The only pods that are updated.
    pub selector: Option<LabelSelector>,
    /// Number or percentage of pods that keep their sidecars; default 0.
    pub partition: Option<IntOrString>,
    /// Most pods that may be unavailable; default 1.
    pub max_unavailable: Option<IntOrString>,
    /// Which pods update first.
    pub priority_strategy: Option<PriorityStrategy>,
    /// Labels whose pods should not update one after another.
    #[serde(deserialize_with = "null_as_default")]
    pub scatter_strategy: Vec<ScatterTerm>,
}

/// Reported state; the same in both versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarSetStatus {
    /// Generation the counts belong to.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Active pods that match and are injected.
    pub matched_pods: i32,
    /// Of these, of the newest revision.
    pub updated_pods: i32,
    /// Of the matched ones, Ready.
    pub ready_pods: i32,
    /// Of the matched ones, both. Absent for zero, as OpenKruise has it.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_ready_pods: i32,
    /// Name of the revision of the current specification.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub latest_revision: String,
    /// Revision name collisions so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
}

// Serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// An object that is no SidecarSet this build can read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not of a served version.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// A member has another type than its field.
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
}

impl SidecarSet {
    /// Reads an object of either version. `api_version` stays that of the object.
    ///
    /// # Errors
    /// Fails if the version is not served, or a field has another type.
    pub fn from_json(object: &Value) -> Result<Self, ReadError> {
        let mut hub = object.clone();
        convert_as(&super::KIND, &mut hub, V1BETA1)?;
        let mut set = Self::deserialize(hub)?;
        if let Some(version) = object.get("apiVersion").and_then(Value::as_str) {
            version.clone_into(&mut set.api_version);
        }
        Ok(set)
    }
}
