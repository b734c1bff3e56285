//! Lifecycle hooks: labels and finalizers that hold a pod before it is updated, deleted or counted as available. CloneSet
//! and StatefulSet have the same fields.

use serde::{Deserialize, Serialize};

use crate::meta::{StringMap, null_as_default};

/// Hooks at the turns of a pod's life.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lifecycle {
    /// Before a pod is deleted by its workload.
    pub pre_delete: Option<LifecycleHook>,
    /// Before and after an in-place update.
    pub in_place_update: Option<LifecycleHook>,
    /// Before a new pod counts as available.
    pub pre_normal: Option<LifecycleHook>,
}

/// Labels and finalizers that hold a pod at a turn of its life.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LifecycleHook {
    /// Labels that hold.
    #[serde(deserialize_with = "null_as_default")]
    pub labels_handler: StringMap,
    /// Finalizers that hold.
    #[serde(deserialize_with = "null_as_default")]
    pub finalizers_handler: Vec<String>,
    /// Turn `KruisePodReady` False while held.
    #[serde(deserialize_with = "null_as_default")]
    pub mark_pod_not_ready: bool,
}
