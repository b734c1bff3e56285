//! A StatefulSet as users create it.

use crate::rules::prelude::*;
use crate::subjects::cloneset::start::Policy;
use crate::subjects::hooks::{Hooks, Mark};

pub const NAME: &str = "statefulset";
pub const STATEFULSETS: Resource = Resource::kruise("statefulsets", "StatefulSet");
/// StorageClasses.
pub const CLASSES: Resource = Resource {
    group: "storage.k8s.io",
    version: "v1",
    plural: "storageclasses",
    kind: "StorageClass",
};
/// The class of claims, which are made larger when a claim asks for more.
pub const CLASS: &str = "growing";
/// Name of the claim template.
pub const CLAIM: &str = "data";
/// `revisionHistoryLimit`.
pub const HISTORY: i64 = 3;

/// A StatefulSet when it is created.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// `spec.replicas`.
    pub replicas: u32,
    /// `podManagementPolicy`: `Parallel`, or `OrderedReady`.
    pub parallel: bool,
    /// `podUpdatePolicy`.
    pub policy: Policy,
    /// `maxUnavailable`, as text; `20%` or `2`. Ordered sets allow only `1`.
    pub max_unavailable: String,
    /// `partition`.
    pub partition: u32,
    /// `minReadySeconds`.
    pub min_ready_seconds: u32,
    /// `scaleStrategy.maxUnavailable`, as text; empty for none.
    pub scale_max_unavailable: String,
    /// `ordinals.start`, with its gate; none without.
    pub first: Option<u32>,
    /// `reserveOrdinals`: numbers, and ranges such as `3-5`.
    pub reserved: Vec<String>,
    /// A hook holds pods before they are updated in place, and marks them not ready.
    pub hook: bool,
    /// A hook holds pods with this mark before they are deleted. True: pods that it holds are unavailable.
    pub pre_delete: Option<(Mark, bool)>,
    /// Pods become available only with this mark.
    pub pre_normal: Option<Mark>,
    /// `gracePeriodSeconds` of updates in place.
    pub grace: u32,
    /// `unorderedUpdate`: pods that users have marked are updated first. Only with `Parallel`.
    pub priority: bool,
    /// What happens to claims; none for a StatefulSet without.
    pub claims: Option<Claims>,
}

/// What happens to claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// `whenScaled`: are those of pods that are scaled away deleted?
    pub when_scaled: bool,
    /// `whenDeleted`: are all deleted with the StatefulSet?
    pub when_deleted: bool,
    /// They grow with their pods' updates, with the gate for it.
    pub resized: Option<Growth>,
}

/// When the file system of a claim grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Growth {
    /// While a pod has it mounted.
    Online,
    /// When a pod is started after the volume has grown.
    Offline,
}

impl Start {
    /// A StatefulSet without any of the optional features.
    pub fn plain(replicas: u32) -> Self {
        Self {
            replicas,
            max_unavailable: "1".into(),
            ..Self::default()
        }
    }

    /// Its hooks.
    pub fn hooks(&self) -> Hooks {
        Hooks {
            update: self.hook,
            pre_delete: self.pre_delete,
            pre_normal: self.pre_normal,
        }
    }

    /// Feature gates that are on for it.
    pub fn gates(&self) -> Vec<&'static str> {
        let first = self.first.map(|_| "StatefulSetStartOrdinal");
        let resized = self.resizes().then_some("StatefulSetAutoResizePVCGate");
        first.into_iter().chain(resized).collect()
    }

    /// Do claims grow?
    pub fn resizes(&self) -> bool {
        self.claims.is_some_and(|claims| claims.resized.is_some())
    }
}
