//! The fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::convert::convert_to_newer;
use crate::meta::{ObjectMeta, StringMap, null_as_default};
use crate::parse::Parse;
use crate::podunavailablebudget::TargetRef;

/// A PersistentPodState as the planner and the webhook see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentPodState {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: PersistentPodStateSpec,
    /// Records.
    #[serde(deserialize_with = "null_as_default")]
    pub status: PersistentPodStateStatus,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentPodStateSpec {
    /// The workload whose pods are recorded.
    #[serde(deserialize_with = "null_as_default")]
    pub target_ref: TargetRef,
    /// Annotations of pods that are recorded.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub persistent_pod_annotations: Vec<PersistentPodAnnotation>,
    /// Labels in which the new node of a pod must agree with the old one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_persistent_topology: Option<NodeTopology>,
    /// Labels in which they are preferred to agree.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub preferred_persistent_topology: Vec<PreferredTopology>,
    /// What becomes of the records of pods that are scaled in.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub persistent_pod_state_retention_policy: String,
}

/// An annotation that is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct PersistentPodAnnotation {
    /// Its key.
    #[serde(deserialize_with = "null_as_default")]
    pub key: String,
}

/// Labels of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct NodeTopology {
    /// Their keys.
    #[serde(deserialize_with = "null_as_default")]
    pub keys: Vec<String>,
}

/// Labels of nodes that count so much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct PreferredTopology {
    /// From 1 to 100. Stored objects may have any number.
    #[serde(deserialize_with = "null_as_default")]
    pub weight: i32,
    /// The labels.
    #[serde(deserialize_with = "null_as_default")]
    pub preference: NodeTopology,
}

/// Records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentPodStateStatus {
    /// Generation of the specification that the records belong to.
    #[serde(deserialize_with = "null_as_default")]
    pub observed_generation: i64,
    /// Where each pod was, by the name of the pod.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub pod_states: BTreeMap<String, PodState>,
}

/// Where one pod was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodState {
    /// Its node.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub node_name: String,
    /// Labels of the node.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "StringMap::is_empty"
    )]
    pub node_topology_labels: StringMap,
    /// Annotations of the pod.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "StringMap::is_empty"
    )]
    pub annotations: StringMap,
}

impl PersistentPodState {
    /// Reads an object of either version. `api_version` stays that of the object.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(mut object: Value) -> Result<Self, String> {
        let version = convert_to_newer(&KIND, &mut object)?;
        let mut state = Self::deserialize(object).map_err(|error| error.to_string())?;
        state.api_version = version;
        Ok(state)
    }
}

impl PersistentPodStateSpec {
    /// Keys of the labels in which the new node must agree.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        let keys = self.required_persistent_topology.iter();
        keys.flat_map(|topology| topology.keys.iter().map(String::as_str))
    }

    /// Keys of all labels that are recorded.
    pub fn topology_keys(&self) -> impl Iterator<Item = &str> {
        let preferred = self.preferred_persistent_topology.iter();
        let preferred = preferred.flat_map(|one| one.preference.keys.iter().map(String::as_str));
        self.required().chain(preferred)
    }

    /// Are records of pods that are scaled in kept? Any policy but the one that says so forgets them.
    pub fn keeps_scaled_in(&self) -> bool {
        self.persistent_pod_state_retention_policy == WHEN_DELETED
    }
}

/// The policy that keeps records until the workload is deleted.
pub const WHEN_DELETED: &str = "WhenDeleted";

impl Parse for PersistentPodState {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_are_read_as_one() {
        let older = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": "broker"},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "broker"},
                "requiredPersistentTopology": {"nodeTopologyKeys": ["zone"]},
                "preferredPersistentTopology": [{"weight": 7, "preference": {"nodeTopologyKeys": ["host"]}}],
                "persistentPodAnnotations": null},
            "status": {"observedGeneration": 2, "podStates": {"broker-0": {"nodeName": "n", "annotations": null}}},
        });
        let newer = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "broker"},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "broker"},
                "requiredPersistentTopology": {"keys": ["zone"]},
                "preferredPersistentTopology": [{"weight": 7, "preference": {"keys": ["host"]}}]},
            "status": {"observedGeneration": 2, "podStates": {"broker-0": {"nodeName": "n"}}},
        });
        let older = PersistentPodState::from_value(older).unwrap();
        let newer = PersistentPodState::from_value(newer).unwrap();
        assert_eq!((&older.spec, &older.status), (&newer.spec, &newer.status));
        assert_eq!(older.spec.topology_keys().collect::<Vec<_>>(), ["zone", "host"]);
        assert_eq!(older.spec.required().collect::<Vec<_>>(), ["zone"]);
        assert!(!older.spec.keeps_scaled_in());
        assert!(PersistentPodState::from_value(json!({"apiVersion": "apps.kruise.io/v9"})).is_err());
    }
}
