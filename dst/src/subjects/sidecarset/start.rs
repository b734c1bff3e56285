//! SidecarSets as users create them.

use crate::rules::prelude::*;

pub const NAME: &str = "sidecarset";
pub const SIDECARSETS: Resource = Resource::kruise("sidecarsets", "SidecarSet");
/// Label of the pods that SidecarSets select.
pub const LABEL: &str = "logs";

/// SidecarSets beside a workload, as they are when they are created.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// In the order of their places.
    pub sets: Vec<Set>,
}

/// A SidecarSet when it is created.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Is it created before the workload? Otherwise a step creates it.
    pub at_first: bool,
    /// A container that restarts for another image.
    pub cold: bool,
    /// A container with a twin for hot upgrades.
    pub hot: bool,
    /// `updateStrategy.partition`, as text.
    pub partition: String,
    /// `updateStrategy.maxUnavailable`, as text.
    pub max_unavailable: String,
    /// Selects namespaces by label.
    pub namespaces: bool,
    /// `revisionHistoryLimit`.
    pub limit: u32,
}
