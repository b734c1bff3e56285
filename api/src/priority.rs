//! Which pods are updated first. CloneSet, SidecarSet and StatefulSet have the same fields.

use serde::{Deserialize, Serialize};

use crate::meta::{LabelSelector, null_as_default};

/// Which pods are updated first. At most one of the lists is used.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriorityStrategy {
    /// Pods with the larger integer at the end of the label value go first; the first key that a pod has counts.
    #[serde(deserialize_with = "null_as_default")]
    pub order_priority: Vec<OrderTerm>,
    /// Pods with the larger sum of matching weights go first.
    #[serde(deserialize_with = "null_as_default")]
    pub weight_priority: Vec<WeightTerm>,
}

/// A label key whose value orders pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OrderTerm {
    /// Label key.
    pub ordered_key: String,
}

/// A weight given to matching pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightTerm {
    /// Weight, 0 to 100.
    pub weight: i32,
    /// Which pods.
    pub match_selector: LabelSelector,
}
