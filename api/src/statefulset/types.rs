//! The fields of `v1beta1`.

use go_compat::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::convert::convert_to_newer;
use crate::lifecycle::Lifecycle;
use crate::meta::{LabelSelector, ObjectMeta, null_as_default};
use crate::parse::Parse;
use crate::priority::PriorityStrategy;
use crate::statefulset::KIND;

/// A StatefulSet as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSet {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: StatefulSetSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: StatefulSetStatus,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetSpec {
    /// Desired number of pods; default 1. Reserved ordinals do not reduce it.
    pub replicas: Option<i32>,
    /// Selects the pods of this StatefulSet.
    pub selector: LabelSelector,
    /// Template of the pods, as stored: unknown fields survive.
    pub template: Value,
    /// Templates of the claims of each pod, as stored.
    #[serde(deserialize_with = "null_as_default")]
    pub volume_claim_templates: Vec<Value>,
    /// How claims follow changed templates; needs the gate `StatefulSetAutoResizePVCGate`.
    #[serde(deserialize_with = "null_as_default")]
    pub volume_claim_update_strategy: ClaimUpdateStrategy,
    /// Service that gives pods their host names.
    #[serde(deserialize_with = "null_as_default")]
    pub service_name: String,
    /// `OrderedReady` (default) or `Parallel`.
    #[serde(deserialize_with = "null_as_default")]
    pub pod_management_policy: String,
    /// How pods are updated.
    #[serde(deserialize_with = "null_as_default")]
    pub update_strategy: UpdateStrategy,
    /// Unused revisions kept; default 10.
    pub revision_history_limit: Option<i32>,
    /// Ordinals, and ranges such as `3-5`, that no pod may have.
    #[serde(deserialize_with = "null_as_default")]
    pub reserve_ordinals: Vec<IntOrString>,
    /// Lifecycle hooks.
    pub lifecycle: Option<Lifecycle>,
    /// How pods are added and removed.
    #[serde(deserialize_with = "null_as_default")]
    pub scale_strategy: ScaleStrategy,
    /// What becomes of claims whose pods are gone for good.
    #[serde(
        rename = "persistentVolumeClaimRetentionPolicy",
        deserialize_with = "null_as_default"
    )]
    pub claim_retention: ClaimRetention,
    /// How pods are numbered; needs the gate `StatefulSetStartOrdinal`.
    #[serde(deserialize_with = "null_as_default")]
    pub ordinals: Ordinals,
}

/// How claims follow changed templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ClaimUpdateStrategy {
    /// `OnPodRollingUpdate`; anything else means `OnDelete`.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
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
    /// Number of pods kept on old revisions; default 0.
    pub partition: Option<i32>,
    /// Most pods that may be unavailable during the update; default 1.
    pub max_unavailable: Option<IntOrString>,
    /// `ReCreate` (default), `InPlaceIfPossible` or `InPlaceOnly`.
    #[serde(deserialize_with = "null_as_default")]
    pub pod_update_policy: String,
    /// Stop updating; scaling continues.
    #[serde(deserialize_with = "null_as_default")]
    pub paused: bool,
    /// Update in another order than by ordinal.
    pub unordered_update: Option<UnorderedUpdate>,
    /// Parameters of in-place updates.
    #[serde(deserialize_with = "null_as_default")]
    pub in_place_update_strategy: InPlaceUpdateStrategy,
    /// Seconds that a pod must be Ready before it counts as available; default 0.
    #[serde(deserialize_with = "null_as_default")]
    pub min_ready_seconds: i32,
}

/// An order of updates that is not that of the ordinals.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnorderedUpdate {
    /// Which pods update first.
    pub priority_strategy: Option<PriorityStrategy>,
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
    /// Seconds that one pull may take.
    pub image_pre_download_timeout_seconds: Option<i32>,
    /// Updated and ready pods needed before images are pulled ahead.
    pub image_pre_download_min_updated_ready_pods: Option<i32>,
}

/// How pods are added and removed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleStrategy {
    /// Most pods that may be unavailable while scaling; unset means no limit.
    pub max_unavailable: Option<IntOrString>,
}

/// What becomes of claims whose pods are gone for good: `Retain` (default) or `Delete`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimRetention {
    /// When the StatefulSet is deleted.
    #[serde(deserialize_with = "null_as_default")]
    pub when_deleted: String,
    /// When their pods are scaled away.
    #[serde(deserialize_with = "null_as_default")]
    pub when_scaled: String,
}

/// How pods are numbered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Ordinals {
    /// Number of the first pod; default 0.
    #[serde(deserialize_with = "null_as_default")]
    pub start: i32,
}

/// Reported state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetStatus {
    /// Generation the counts belong to.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Pods that exist, those that are going included.
    pub replicas: i32,
    /// Pods that run and are Ready.
    pub ready_replicas: i32,
    /// Pods that have been Ready for `minReadySeconds` and that no lifecycle state keeps out of service.
    pub available_replicas: i32,
    /// Pods of the current revision that are not being deleted.
    pub current_replicas: i32,
    /// Pods of the update revision that are not being deleted.
    pub updated_replicas: i32,
    /// Ready pods of the update revision.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_ready_replicas: i32,
    /// Available pods of the update revision.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_available_replicas: i32,
    /// Name of the revision last fully rolled out.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub current_revision: String,
    /// Name of the revision being rolled out.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub update_revision: String,
    /// Revision name collisions so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Conditions.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The selector as text, for autoscalers.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub label_selector: String,
    /// How far claims follow their templates.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub volume_claims: Vec<ClaimStatus>,
}

/// How far the claims of one template follow it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimStatus {
    /// Name of the claim template.
    pub volume_claim_name: String,
    /// Pods whose claim matches the template.
    pub compatible_replicas: i32,
    /// Those of them whose claim has the capacity that it asks for.
    pub compatible_ready_replicas: i32,
}

impl StatefulSet {
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

impl Parse for StatefulSet {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::convert::convert_as;

    #[test]
    fn the_older_version_reads_as_the_hub_with_what_was_kept_of_it() {
        let stored = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": {"name": "web"},
            "spec": {"replicas": 3, "reserveOrdinals": [1, "4-6"], "persistentVolumeClaimRetentionPolicy": null,
                     "updateStrategy": {"rollingUpdate": {"inPlaceUpdateStrategy": null, "partition": 2}}}
        });
        let mut older = stored.clone();
        convert_as(&KIND, &mut older, "apps.kruise.io/v1alpha1").unwrap();
        let set = StatefulSet::from_value(older).unwrap();
        assert_eq!(set.api_version, "apps.kruise.io/v1alpha1");
        assert_eq!(set.spec, StatefulSet::from_value(stored).unwrap().spec);
        assert_eq!(
            set.spec.reserve_ordinals,
            [IntOrString::Int(1), IntOrString::String("4-6".into())]
        );
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| StatefulSet::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "apps/v1"})).contains("apps/v1"));
        let wrong = json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {"replicas": "three"}});
        assert!(error(wrong).contains("three"));
    }
}
