//! A DaemonSet as users create it, and the nodes below it.

use crate::rules::prelude::*;
use crate::subjects::hooks::{Hooks, Mark};

pub const NAME: &str = "daemonset";
pub const DAEMONSETS: Resource = Resource::kruise("daemonsets", "DaemonSet");
/// `revisionHistoryLimit`.
pub const HISTORY: i64 = 3;

/// How pods are updated, with the limit as text: `2` or `30%`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Strategy {
    /// `InPlaceIfPossible`, `maxUnavailable`.
    InPlace(String),
    /// `Standard`, `maxUnavailable`.
    Standard(String),
    /// `Standard`, `maxSurge`.
    Surge(String),
}

/// A DaemonSet when it is created, and the cluster below it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Nodes at first, three at least.
    pub nodes: u8,
    /// `rollingUpdate`.
    pub strategy: Strategy,
    /// `partition`, as text; empty for none.
    pub partition: String,
    /// `rollingUpdate.selector`: the pool of nodes that are updated; empty for none.
    pub selector: String,
    /// `burstReplicas`, as text; empty for the default.
    pub burst: String,
    /// `minReadySeconds`.
    pub min_ready_seconds: u32,
    /// `nodeSelector` of the template: a pool; empty for none.
    pub pool: String,
    /// A hook holds pods with this mark before they are deleted. True: pods that it holds are unavailable.
    pub pre_delete: Option<(Mark, bool)>,
    /// `scaleStrategy.partitionedScaling`.
    pub partitioned_scaling: bool,
    /// With the gate `DaemonSetPruneIneligibleNodes`.
    pub prunes: bool,
}

impl Start {
    /// Its hooks.
    pub fn hooks(&self) -> Hooks {
        Hooks {
            update: false,
            pre_delete: self.pre_delete,
            pre_normal: None,
        }
    }
}
