//! The fields of `v1beta1`.

use std::collections::BTreeMap;

use go_compat::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::condition::JobCondition;
use crate::convert::convert_to_newer;
use crate::definition::Kind;
use crate::meta::{LabelSelector, ObjectMeta, null_as_default};
use crate::parse::Parse;
use crate::{cloneset, statefulset};

/// A UnitedDeployment as planners see it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnitedDeployment {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: UnitedDeploymentSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: UnitedDeploymentStatus,
}

/// How many pods, in which workloads, on which nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnitedDeploymentSpec {
    /// Pods of all subsets together; see [`UnitedDeploymentSpec::total`].
    pub replicas: Option<i32>,
    /// Labels of its workloads and pods.
    #[serde(deserialize_with = "null_as_default")]
    pub selector: LabelSelector,
    /// The templates as stored; see [`UnitedDeploymentSpec::child`].
    pub template: Value,
    /// The subsets.
    #[serde(deserialize_with = "null_as_default")]
    pub topology: Topology,
    /// Partitions.
    #[serde(deserialize_with = "null_as_default")]
    pub update_strategy: UpdateStrategy,
    /// Revisions to keep; 10 if not set.
    pub revision_history_limit: Option<i32>,
}

/// Subsets, and what happens to pods that one of them cannot take.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Topology {
    /// The subsets in the order in which they are filled.
    #[serde(deserialize_with = "null_as_default")]
    pub subsets: Vec<Subset>,
    /// What happens to pods that cannot be scheduled.
    #[serde(deserialize_with = "null_as_default")]
    pub schedule_strategy: ScheduleStrategy,
}

/// One subset.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subset {
    /// Its name, unique in the list.
    pub name: String,
    /// The nodes of its pods; only `matchExpressions` count.
    pub node_selector_term: Value,
    /// Further tolerations of its pods.
    #[serde(deserialize_with = "null_as_default")]
    pub tolerations: Vec<Value>,
    /// Its pods.
    pub replicas: Option<IntOrString>,
    /// The least of its pods.
    pub min_replicas: Option<IntOrString>,
    /// The most of its pods.
    pub max_replicas: Option<IntOrString>,
    /// A strategic merge patch of its pod template.
    pub patch: Option<Value>,
}

/// What happens to pods that cannot be scheduled.
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
    /// Seconds that a pod may be unschedulable; 30 if not set.
    pub reschedule_critical_seconds: Option<i32>,
    /// Seconds that a subset counts as unschedulable; 300 if not set.
    pub unschedulable_duration: Option<i32>,
    /// Keep pods that cannot be scheduled, and create others in addition.
    #[serde(deserialize_with = "null_as_default")]
    pub reserve_unschedulable_pods: bool,
}

/// How many pods of each subset stay at old revisions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// Partitions.
    #[serde(deserialize_with = "null_as_default")]
    pub manual_update: ManualUpdate,
}

/// Partitions by the name of the subset.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManualUpdate {
    /// Pods that stay at old revisions; none where a subset is missing.
    #[serde(deserialize_with = "null_as_default")]
    pub partitions: BTreeMap<String, i32>,
}

/// What was last reported.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnitedDeploymentStatus {
    /// Generation that the numbers belong to.
    pub observed_generation: i64,
    /// Pods of all subsets less the reserved ones.
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
    /// Ready pods.
    #[serde(deserialize_with = "null_as_default")]
    pub ready_replicas: i32,
    /// Pods of the newest revision.
    #[serde(deserialize_with = "null_as_default")]
    pub updated_replicas: i32,
    /// Ready pods of the newest revision.
    #[serde(deserialize_with = "null_as_default")]
    pub updated_ready_replicas: i32,
    /// Pods that are kept although they cannot be scheduled.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub reserved_pods: i32,
    /// Name of the revision that was last rolled out in full.
    #[serde(deserialize_with = "null_as_default")]
    pub current_revision: String,
    /// Name of the newest revision.
    #[serde(deserialize_with = "null_as_default")]
    pub updated_revision: String,
    /// The subsets.
    #[serde(deserialize_with = "null_as_default")]
    pub subset_statuses: Vec<SubsetStatus>,
    /// Conditions, each type at most once.
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<JobCondition>,
    /// The selector as text, for the scale subresource.
    #[serde(deserialize_with = "null_as_default")]
    pub label_selector: String,
}

/// What was last reported of a subset.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubsetStatus {
    /// Its name.
    pub name: String,
    /// Pods that it should have.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// Ready pods.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub ready_replicas: i32,
    /// Pods that it keeps at old revisions.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub partition: i32,
    /// Pods that are kept although they cannot be scheduled.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub reserved_pods: i32,
    /// Conditions, each type at most once.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<JobCondition>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// The kind of the workloads of a UnitedDeployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    /// StatefulSet of `apps`.
    StatefulSet,
    /// StatefulSet of `apps.kruise.io`.
    AdvancedStatefulSet,
    /// CloneSet.
    CloneSet,
    /// Deployment.
    Deployment,
}

impl Child {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::StatefulSet,
        Self::AdvancedStatefulSet,
        Self::CloneSet,
        Self::Deployment,
    ];

    /// The name in events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StatefulSet => "StatefulSet",
            Self::AdvancedStatefulSet => "AdvancedStatefulSet",
            Self::CloneSet => "CloneSet",
            Self::Deployment => "Deployment",
        }
    }

    /// The name of the kind.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::AdvancedStatefulSet => "StatefulSet",
            other => other.name(),
        }
    }

    /// The newest `apiVersion` of the kind.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::StatefulSet | Self::Deployment => "apps/v1",
            Self::AdvancedStatefulSet | Self::CloneSet => "apps.kruise.io/v1beta1",
        }
    }

    /// The definition, if the kind is one of ours.
    pub const fn definition(self) -> Option<&'static Kind> {
        match self {
            Self::StatefulSet | Self::Deployment => None,
            Self::AdvancedStatefulSet => Some(&statefulset::KIND),
            Self::CloneSet => Some(&cloneset::KIND),
        }
    }

    /// The member of `spec.template` that is its template.
    pub const fn member(self) -> &'static str {
        match self {
            Self::StatefulSet => "statefulSetTemplate",
            Self::AdvancedStatefulSet => "advancedStatefulSetTemplate",
            Self::CloneSet => "cloneSetTemplate",
            Self::Deployment => "deploymentTemplate",
        }
    }
}

/// The template of a workload in the member `template` of a specification, and its kind; the first, if there are
/// several.
pub fn workload_template(template: &Value) -> Option<(Child, &Value)> {
    Child::ALL.into_iter().find_map(|child| {
        let found = template.get(child.member()).filter(|found| found.is_object())?;
        Some((child, found))
    })
}

impl UnitedDeploymentSpec {
    /// How many pods all subsets have together.
    pub fn total(&self) -> i32 {
        self.replicas.unwrap_or(1).max(0)
    }

    /// The template, and the kind that it is of.
    pub fn child(&self) -> Option<(Child, &Value)> {
        workload_template(&self.template)
    }

    /// Revisions to keep.
    pub fn history_limit(&self) -> usize {
        usize::try_from(self.revision_history_limit.unwrap_or(10)).unwrap_or(0)
    }
}

impl ScheduleStrategy {
    /// Do pods that cannot be scheduled move?
    pub fn is_adaptive(&self) -> bool {
        self.kind == "Adaptive"
    }

    /// Do pods that cannot be scheduled stay, and others run in addition?
    pub fn reserves(&self) -> bool {
        self.is_adaptive() && self.adaptive.reserve_unschedulable_pods
    }
}

impl Adaptive {
    /// Seconds that a pod may be unschedulable.
    pub fn critical_seconds(&self) -> i64 {
        i64::from(self.reschedule_critical_seconds.unwrap_or(30))
    }

    /// Seconds that a subset counts as unschedulable.
    pub fn unschedulable_seconds(&self) -> i64 {
        i64::from(self.unschedulable_duration.unwrap_or(300))
    }
}

impl UnitedDeployment {
    /// From raw JSON of any version.
    ///
    /// # Errors
    /// In plain words, if it is of no version that is served, or a field has another type.
    pub fn from_value(mut object: Value) -> Result<Self, String> {
        let version = convert_to_newer(&KIND, &mut object)?;
        let mut united = Self::deserialize(object).map_err(|error| error.to_string())?;
        united.api_version = version;
        Ok(united)
    }
}

impl Parse for UnitedDeployment {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}
