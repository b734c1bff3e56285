//! Lifecycle hooks: labels and finalizers that hold a pod before it is updated, deleted or counted as available.
//! CloneSet and StatefulSet have the same fields.

use serde::{Deserialize, Serialize};

use crate::meta::{StringMap, null_as_default};

/// Lifecycle hooks of a workload; unset hooks hold nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lifecycle {
    /// Holds a pod before its workload deletes it, while one of them is on the pod.
    pub pre_delete: Option<LifecycleHook>,
    /// Holds a pod before an in-place update while one of them is on it, and afterwards until all are back.
    pub in_place_update: Option<LifecycleHook>,
    /// Holds a new pod, which does not count as available, until all of them are on it.
    pub pre_normal: Option<LifecycleHook>,
}

impl Lifecycle {
    /// Does a label of this key belong to a hook?
    pub fn has_label(&self, key: &str) -> bool {
        let hooks = [&self.pre_delete, &self.in_place_update, &self.pre_normal];
        let mut hooks = hooks.into_iter().flatten();
        hooks.any(|hook| hook.labels_handler.contains_key(key))
    }
}

/// Labels and finalizers that hold a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LifecycleHook {
    /// Labels, with their values, that hold.
    #[serde(deserialize_with = "null_as_default")]
    pub labels_handler: StringMap,
    /// Finalizers that hold.
    #[serde(deserialize_with = "null_as_default")]
    pub finalizers_handler: Vec<String>,
    /// Set the condition `KruisePodReady` to False while the pod is held before its update or deletion.
    #[serde(deserialize_with = "null_as_default")]
    pub mark_pod_not_ready: bool,
}
