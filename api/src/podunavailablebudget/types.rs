//! The fields of `v1beta1`.

use std::collections::BTreeMap;

use go_compat::IntOrString;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use crate::convert::convert_to_newer;
use crate::meta::{LabelSelector, ObjectMeta, null_as_default};
use crate::names::podunavailablebudget::{PROTECT_OPERATIONS, PROTECT_TOTAL_REPLICAS};
use crate::parse::Parse;
use crate::podunavailablebudget::KIND;

/// A PodUnavailableBudget as planners and webhooks see it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodUnavailableBudget {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: PodUnavailableBudgetSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: PodUnavailableBudgetStatus,
}

/// Which pods are protected, and how many of them may be unavailable.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodUnavailableBudgetSpec {
    /// Labels of the pods; excludes `target_ref`.
    pub selector: Option<LabelSelector>,
    /// The workload whose pods are protected.
    pub target_ref: Option<TargetRef>,
    /// Most pods that may be unavailable; excludes `min_available`.
    pub max_unavailable: Option<IntOrString>,
    /// Least pods that must be available.
    pub min_available: Option<IntOrString>,
    /// What is limited; empty for DELETE, UPDATE and EVICT.
    #[serde(deserialize_with = "null_as_default")]
    pub protect_operations: Vec<String>,
    /// Expected number of pods, in place of the replicas of workloads.
    pub protect_total_replicas: Option<i32>,
    /// Labels of pods that the budget never keeps.
    pub ignored_pod_selector: Option<LabelSelector>,
}

/// A workload in the namespace of the budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetRef {
    /// Its group and a version, of which only the group counts.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl TargetRef {
    /// Does it name this workload? Any version of the kind is the same kind.
    pub fn names(&self, group: &str, kind: &str, name: &str) -> bool {
        self.group() == group && self.kind == kind && self.name == name
    }

    /// The group part of `apiVersion`; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// Numbers of pods, and what was allowed since they were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodUnavailableBudgetStatus {
    /// Generation of the specification that the numbers belong to.
    #[serde(deserialize_with = "null_as_default")]
    pub observed_generation: i64,
    /// Pods that may become unavailable now.
    #[serde(deserialize_with = "null_as_default")]
    pub unavailable_allowed: i32,
    /// Pods that were available when last counted.
    #[serde(deserialize_with = "null_as_default")]
    pub current_available: i32,
    /// Pods that must stay available; 0 switches the budget off.
    #[serde(deserialize_with = "null_as_default")]
    pub desired_available: i32,
    /// Expected number of pods; -1 if OpenKruise did not know it.
    #[serde(deserialize_with = "null_as_default")]
    pub total_replicas: i32,
    /// Pods that may be deleted, by name, and since when.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Entries::is_empty"
    )]
    pub disrupted_pods: Entries,
    /// Pods that may be updated in place, by name, and since when.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Entries::is_empty"
    )]
    pub unavailable_pods: Entries,
}

/// Names of pods, each with the time at which it was allowed to become unavailable. Stored in whole seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Entries(pub BTreeMap<String, Timestamp>);

impl Entries {
    /// No pods?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of pods.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Since when a pod may be unavailable.
    pub fn get(&self, pod: &str) -> Option<Timestamp> {
        self.0.get(pod).copied()
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, since) in &self.0 {
            map.serialize_entry(name, &since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())?;
        }
        map.end()
    }
}

impl PodUnavailableBudget {
    /// Reads an object of either version. `api_version` stays that of the object.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(mut object: Value) -> Result<Self, String> {
        let version = convert_to_newer(&KIND, &mut object)?;
        let mut budget = Self::deserialize(object).map_err(|error| error.to_string())?;
        budget.api_version = version;
        Ok(budget)
    }

    /// The protected operations as they are written: those of the field, or of the annotation where the field has none.
    /// Clusters that convert without a webhook have them only there. Empty if neither names any.
    pub fn protected_operations(&self) -> Vec<&str> {
        let written = |name: &str| !name.trim().is_empty();
        let fields = &self.spec.protect_operations;
        let names: Vec<&str> = if fields.iter().any(|name| written(name)) {
            fields.iter().map(String::as_str).collect()
        } else {
            let annotation = self.metadata.annotations.get(PROTECT_OPERATIONS);
            annotation.into_iter().flat_map(|text| text.split(',')).collect()
        };
        names
            .into_iter()
            .map(str::trim)
            .filter(|name| written(name))
            .collect()
    }

    /// The expected number of pods where it does not follow from workloads: that of the field, or of the annotation
    /// where the field has none.
    pub fn protected_total(&self) -> Option<i32> {
        let annotated = || {
            self.metadata
                .annotations
                .get(PROTECT_TOTAL_REPLICAS)?
                .parse()
                .ok()
        };
        self.spec.protect_total_replicas.or_else(annotated)
    }
}

impl Parse for PodUnavailableBudget {
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
            "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
            "metadata": {"name": "web", "namespace": "shop", "generation": 2},
            "spec": {
                "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"},
                "maxUnavailable": "20%", "protectOperations": ["EVICT", "RESIZE"], "protectTotalReplicas": 4,
                "ignoredPodSelector": {"matchLabels": {"force": "true"}},
            },
            "status": {
                "observedGeneration": 2, "unavailableAllowed": 1, "currentAvailable": 5, "desiredAvailable": 4,
                "totalReplicas": 5, "disruptedPods": {"web-1": "2026-01-02T03:04:05Z"}, "unavailablePods": null,
            },
        })
    }

    #[test]
    fn the_older_version_reads_as_the_newer() {
        let newer = PodUnavailableBudget::from_value(stored()).unwrap();
        let mut older = stored();
        convert_as(&KIND, &mut older, "policy.kruise.io/v1alpha1").unwrap();
        assert!(older["spec"].get("protectOperations").is_none(), "{older}");
        let older = PodUnavailableBudget::from_value(older).unwrap();
        assert_eq!((&older.spec, &older.status), (&newer.spec, &newer.status));
        assert_eq!(older.protected_operations(), ["EVICT", "RESIZE"]);
        assert_eq!(older.protected_total(), Some(4));
        assert_eq!(older.api_version, "policy.kruise.io/v1alpha1");
    }

    #[test]
    fn annotations_count_where_a_cluster_converts_by_name_only() {
        let mut object = stored();
        object["metadata"]["annotations"] =
            json!({PROTECT_OPERATIONS: "EVICT, UPDATE,", PROTECT_TOTAL_REPLICAS: "7"});
        let read = |object: &Value| PodUnavailableBudget::deserialize(object).unwrap();
        let fields = read(&object);
        assert_eq!(fields.protected_operations(), ["EVICT", "RESIZE"]);
        assert_eq!(fields.protected_total(), Some(4));
        for field in ["protectOperations", "protectTotalReplicas"] {
            object["spec"].as_object_mut().unwrap().remove(field);
        }
        let annotated = read(&object);
        assert_eq!(annotated.protected_operations(), ["EVICT", "UPDATE"]);
        assert_eq!(annotated.protected_total(), Some(7));
        object["metadata"]["annotations"] = json!({PROTECT_TOTAL_REPLICAS: "many"});
        assert!(read(&object).protected_operations().is_empty());
        assert_eq!(read(&object).protected_total(), None);
    }

    #[test]
    fn a_status_is_written_as_clients_of_both_versions_read_it() {
        let mut status = PodUnavailableBudget::from_value(stored()).unwrap().status;
        assert_eq!(
            serde_json::to_value(&status).unwrap(),
            json!({
                "observedGeneration": 2, "unavailableAllowed": 1, "currentAvailable": 5, "desiredAvailable": 4,
                "totalReplicas": 5, "disruptedPods": {"web-1": "2026-01-02T03:04:05Z"},
            })
        );
        let since = "2026-01-02T03:04:05.678Z".parse().unwrap();
        status.disrupted_pods.0.insert("web-1".into(), since);
        let written = serde_json::to_value(&status).unwrap();
        assert_eq!(written["disruptedPods"]["web-1"], "2026-01-02T03:04:05Z");
    }

    #[test]
    fn a_target_is_the_same_in_every_version() {
        let target = PodUnavailableBudget::from_value(stored())
            .unwrap()
            .spec
            .target_ref;
        let target = target.unwrap();
        assert!(target.names("apps.kruise.io", "CloneSet", "web"));
        assert!(
            !target.names("apps", "CloneSet", "web") && !target.names("apps.kruise.io", "StatefulSet", "web")
        );
        let core = TargetRef {
            api_version: "v1".into(),
            ..target
        };
        assert_eq!(core.group(), "");
    }
}
