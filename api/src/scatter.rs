//! Which pods are not updated one after another. CloneSet and SidecarSet have the same field.

use serde::{Deserialize, Serialize};

/// A label whose pods are spread over the update order.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScatterTerm {
    /// Label key.
    pub key: String,
    /// Label value.
    pub value: String,
}
