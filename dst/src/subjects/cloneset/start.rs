//! A CloneSet as users create it.

use crate::rules::prelude::*;
use crate::subjects::hooks::{Hooks, Mark};

/// A CloneSet when it is created.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// `spec.replicas`.
    pub replicas: u32,
    /// `podUpdatePolicy`.
    pub policy: Policy,
    /// `maxUnavailable`, as text; `20%` or `2`.
    pub max_unavailable: String,
    /// `maxSurge`, as text.
    pub max_surge: String,
    /// `partition`, as text.
    pub partition: String,
    /// `minReadySeconds`.
    pub min_ready_seconds: u32,
    /// `scaleStrategy.maxUnavailable`, as text; empty for none.
    pub scale_max_unavailable: String,
    /// A hook holds pods before they are updated in place, and marks them not ready.
    pub hook: bool,
    /// A hook holds pods before they are deleted.
    pub pre_delete: Option<PreDelete>,
    /// Pods become available only with this mark.
    pub pre_normal: Option<Mark>,
    /// `gracePeriodSeconds` of updates in place.
    pub grace: u32,
    /// Containers request processor time, and another amount now and then.
    pub resources: bool,
    /// The first container restarts for another amount.
    pub restarts: bool,
    /// The container reads an annotation of its pod.
    pub config: bool,
    /// The container starts slowly, and has a startup probe.
    pub startup: bool,
    /// There is a second container, which changes after the first.
    pub batches: bool,
    /// `progressDeadlineSeconds`; zero for none.
    pub deadline: u32,
    /// Managers roll pods back when the partition grows.
    pub rolls_back: bool,
    /// Pods that users have marked are updated first.
    pub priority: bool,
    /// Pods that users have marked are updated last.
    pub order: bool,
    /// Pods that users have marked are spread over a rollout.
    pub scatter: bool,
    /// What happens to the claims of deleted pods; none for a CloneSet without claims.
    pub claims: Option<Claims>,
    /// Further labels of its pods.
    pub labels: BTreeMap<String, String>,
}

impl Start {
    /// A CloneSet without any of the optional features.
    pub fn plain(replicas: u32, policy: Policy) -> Self {
        Self {
            replicas,
            policy,
            max_unavailable: "2".into(),
            max_surge: "0".into(),
            partition: "0".into(),
            ..Self::default()
        }
    }

    /// Its hooks.
    pub fn hooks(&self) -> Hooks {
        Hooks {
            update: self.hook,
            pre_delete: self.pre_delete.map(|hook| (hook.mark, hook.not_ready)),
            pre_normal: self.pre_normal,
        }
    }
}

/// What happens to the claims of deleted pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Claims {
    /// Their successors reuse them.
    Reused,
    /// They are deleted, too.
    Gone,
}

/// A hook before deletions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PreDelete {
    /// It holds a pod that has this.
    pub mark: Mark,
    /// Pods that it holds are unavailable.
    pub not_ready: bool,
    /// `excludePreparingDelete`: pods that it holds do not count as replicas.
    pub excluded: bool,
}

/// How pods are updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Policy {
    /// By new pods.
    #[default]
    ReCreate,
    /// In place where the change allows.
    InPlaceIfPossible,
    /// In place.
    InPlaceOnly,
}
