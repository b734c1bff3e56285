//! The fields of `v1beta1`.

use std::collections::BTreeMap;

use go_compat::IntOrString;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::convert::convert_to_newer;
use crate::meta::{LabelSelector, ObjectMeta, null_as_default, whole_seconds};
use crate::parse::Parse;
use crate::podunavailablebudget::{Entries, TargetRef};

/// A WorkloadSpread as planners and webhooks see it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpread {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: WorkloadSpreadSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: WorkloadSpreadStatus,
}

/// Whose pods are spread, over which subsets, and how strictly.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpreadSpec {
    /// The workload, in the namespace of the WorkloadSpread.
    pub target_ref: Option<TargetRef>,
    /// Which pods of the workload count, and where its number of pods is.
    pub target_filter: Option<TargetFilter>,
    /// The subsets in the order in which they are filled.
    #[serde(deserialize_with = "null_as_default")]
    pub subsets: Vec<Subset>,
    /// What happens to pods that a subset cannot take.
    #[serde(deserialize_with = "null_as_default")]
    pub schedule_strategy: ScheduleStrategy,
}

/// Which pods of the workload count, and where its number of pods is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetFilter {
    /// Labels of the only pods that count; all pods if not set.
    pub selector: Option<LabelSelector>,
    /// Paths of numbers in the workload, which are added up in place of its replicas.
    #[serde(deserialize_with = "null_as_default")]
    pub replicas_path_list: Vec<String>,
}

/// One subset.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subset {
    /// Its name, unique in the list.
    pub name: String,
    /// The nodes of its pods, a `NodeSelectorTerm` as stored.
    pub required_node_selector: Option<Value>,
    /// The nodes that its pods are preferred to be on, `PreferredSchedulingTerm`s as stored.
    #[serde(deserialize_with = "null_as_default")]
    pub preferred_node_selector: Vec<Value>,
    /// Further tolerations of its pods, as stored.
    #[serde(deserialize_with = "null_as_default")]
    pub tolerations: Vec<Value>,
    /// The most of its pods, a number or percent of the workload's replicas; no limit if not set.
    pub max_replicas: Option<IntOrString>,
    /// A strategic merge patch of its pods.
    pub patch: Option<Value>,
}

/// What happens to pods that a subset cannot take.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleStrategy {
    /// `Adaptive`, `Fixed` or empty, which is `Fixed`.
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: String,
    /// Parameters of `Adaptive`.
    #[serde(deserialize_with = "null_as_default")]
    pub adaptive: Adaptive,
}

/// Parameters of `Adaptive`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Adaptive {
    /// Seconds that a pod may be unschedulable before it is moved; never if not set or 0.
    pub reschedule_critical_seconds: Option<i32>,
}

impl WorkloadSpreadSpec {
    /// Seconds that a pod may be unschedulable before it is moved to another subset; `None` if it never is.
    pub fn reschedule_after(&self) -> Option<i32> {
        let strategy = &self.schedule_strategy;
        let seconds = strategy.adaptive.reschedule_critical_seconds?;
        (strategy.kind == "Adaptive" && seconds > 0).then_some(seconds)
    }
}

/// How many pods of the workload the subsets have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpreadStatus {
    /// Generation of the specification that the numbers belong to.
    #[serde(deserialize_with = "null_as_default")]
    pub observed_generation: i64,
    /// The subsets in the order of the specification, over pods of all versions.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub subset_statuses: Vec<SubsetStatus>,
    /// The subsets for each version of the pods. The webhook counts here.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub versioned_subset_statuses: BTreeMap<String, Vec<SubsetStatus>>,
}

/// How many pods one subset has and wants.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubsetStatus {
    /// Its name.
    pub name: String,
    /// Its active pods.
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
    /// Pods that it still wants; -1 without a limit.
    #[serde(deserialize_with = "null_as_default")]
    pub missing_replicas: i32,
    /// Pods that were admitted and not seen yet, and since when. The key is the pod's name, or the uid in its
    /// annotation.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Entries::is_empty"
    )]
    pub creating_pods: Entries,
    /// Pods whose deletion was admitted and that are still seen, by name, and since when.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "Entries::is_empty"
    )]
    pub deleting_pods: Entries,
    /// Whether its pods can be scheduled.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<SubsetCondition>,
}

/// One condition of a subset.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubsetCondition {
    /// Its type; `Schedulable` is the only one.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Generation that it belongs to; never written by OpenKruise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    #[serde(serialize_with = "whole_seconds")]
    pub last_transition_time: Option<Timestamp>,
    /// One word for machines.
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    /// A sentence for people; stored even if it is empty.
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
}

impl WorkloadSpread {
    /// Reads an object of either version. `api_version` stays that of the object.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(mut object: Value) -> Result<Self, String> {
        let version = convert_to_newer(&KIND, &mut object)?;
        let mut spread = Self::deserialize(object).map_err(|error| error.to_string())?;
        spread.api_version = version;
        Ok(spread)
    }
}

/// Which WorkloadSpread and subset a pod is in, as its annotation says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Matched {
    /// Name of the WorkloadSpread.
    pub name: String,
    /// Name of the subset.
    pub subset: String,
    /// Key among the pods that are being created, for a pod that had no name yet; else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl Matched {
    /// Reads the annotation. As Go does, it takes keys of any case; `None` if it is no object of texts.
    pub fn parse(annotation: &str) -> Option<Self> {
        let Value::Object(fields) = serde_json::from_str(annotation).ok()? else {
            return None;
        };
        let mut matched = Self::default();
        for (key, value) in fields {
            let field = match key.to_ascii_lowercase().as_str() {
                "name" => &mut matched.name,
                "subset" => &mut matched.subset,
                "uid" => &mut matched.uid,
                _ => continue,
            };
            match value {
                Value::String(text) => *field = text,
                Value::Null => {}
                _ => return None,
            }
        }
        Some(matched)
    }
}

impl Parse for WorkloadSpread {
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
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
            "metadata": {"name": "web", "namespace": "shop", "generation": 2},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "subsets": [
                    {"name": "a", "maxReplicas": "30%", "requiredNodeSelector": {"matchExpressions": []},
                     "patch": {"metadata": {"labels": {"subset": "a"}}}},
                    {"name": "b", "tolerations": null},
                ],
                "scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30}},
            },
            "status": {
                "observedGeneration": 2,
                "subsetStatuses": [{"name": "a", "replicas": 1, "missingReplicas": 0}],
                "versionedSubsetStatuses": {"5f": [{"name": "a", "replicas": 1, "missingReplicas": 0,
                    "creatingPods": {"web-1": "2026-01-02T03:04:05Z"}, "conditions": [{"type": "Schedulable",
                    "status": "True", "reason": "Sufficient", "message": "",
                    "lastTransitionTime": "2026-01-02T03:04:05Z"}]}]},
            },
        })
    }

    #[test]
    fn the_older_version_reads_as_the_newer() {
        let newer = WorkloadSpread::from_value(stored()).unwrap();
        let mut older = stored();
        convert_as(&KIND, &mut older, "apps.kruise.io/v1alpha1").unwrap();
        assert!(
            older
                .pointer("/spec/subsets/0/requiredNodeSelectorTerm")
                .is_some(),
            "{older}"
        );
        let older = WorkloadSpread::from_value(older).unwrap();
        assert_eq!((&older.spec, &older.status), (&newer.spec, &newer.status));
        assert_eq!(older.api_version, "apps.kruise.io/v1alpha1");
    }

    #[test]
    fn a_status_is_written_as_it_was_read() {
        let status = WorkloadSpread::from_value(stored()).unwrap().status;
        assert_eq!(serde_json::to_value(&status).unwrap(), stored()["status"]);
    }

    #[test]
    fn pods_are_moved_only_by_an_adaptive_strategy_with_a_time() {
        let mut spec = WorkloadSpread::from_value(stored()).unwrap().spec;
        assert_eq!(spec.reschedule_after(), Some(30));
        spec.schedule_strategy.kind = "Fixed".into();
        assert_eq!(spec.reschedule_after(), None);
        spec.schedule_strategy.kind = "Adaptive".into();
        spec.schedule_strategy.adaptive.reschedule_critical_seconds = Some(0);
        assert_eq!(spec.reschedule_after(), None);
    }

    #[test]
    fn the_annotation_of_a_pod_is_read_as_go_reads_it() {
        let matched = Matched {
            name: "web".into(),
            subset: "a".into(),
            uid: String::new(),
        };
        let written = serde_json::to_string(&matched).unwrap();
        assert_eq!(written, r#"{"name":"web","subset":"a"}"#);
        assert_eq!(Matched::parse(&written), Some(matched.clone()));
        assert_eq!(
            Matched::parse(r#"{"Name":"web","Subset":"a","UID":null}"#),
            Some(matched)
        );
        assert_eq!(Matched::parse(r#"{"name":3}"#), None);
        assert_eq!(Matched::parse("web"), None);
    }
}
