//! Which pods are updated first. CloneSet, SidecarSet and StatefulSet have the same fields.

use serde::{Deserialize, Serialize};

use crate::meta::{LabelSelector, null_as_default};

/// Which pods update first: either list, not both.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriorityStrategy {
    /// Larger trailing integer of the first label found goes first.
    #[serde(deserialize_with = "null_as_default")]
    pub order_priority: Vec<OrderTerm>,
    /// Larger sum of matching weights goes first.
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
    /// 0 to 100.
    pub weight: i32,
    /// Which pods.
    pub match_selector: LabelSelector,
}
