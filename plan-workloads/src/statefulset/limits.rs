//! What a specification allows, as numbers of pods.

use go_compat::{IntOrString, Rounding};
use kruise_api::statefulset::{RollingUpdate, StatefulSetSpec};
use kruise_plan_kit::injected::is_injected;

/// No set has as many pods. Larger limits are accepted, and mean the same.
const MANY: i32 = 1 << 24;

/// The limits that a specification sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wanted pods.
    pub replicas: i32,
    /// One pod after the other?
    pub ordered: bool,
    /// Pods that stay on the current revision.
    pub partition: i32,
    /// Most pods out of service for an update.
    pub max_unavailable: i32,
    /// Most pods out of service while adding; `None` is no limit.
    pub scale_max_unavailable: Option<i32>,
    /// Seconds that a pod must be Ready to be available.
    pub min_ready_seconds: i32,
}

impl Limits {
    /// Reads the limits. What is missing has its default. A limit of a percentage is rounded down, and at least 1.
    pub fn of(spec: &StatefulSetSpec) -> Self {
        let replicas = spec.replicas.unwrap_or(1).max(0);
        let none = RollingUpdate::default();
        let rolling = spec.update_strategy.rolling_update.as_ref().unwrap_or(&none);
        let pods = |limit: &IntOrString| limit.scaled_b(replicas, Rounding::Down).clamp(1, MANY);
        let scale = spec.scale_strategy.max_unavailable.as_ref();
        Self {
            replicas,
            ordered: spec.pod_management_policy != "Parallel" && !is_injected("OrderIgnored"),
            partition: rolling.partition.unwrap_or(0).max(0),
            max_unavailable: rolling.max_unavailable.as_ref().map_or(1, pods),
            scale_max_unavailable: scale.map(pods),
            min_ready_seconds: rolling.min_ready_seconds.max(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_down_and_at_least_one() {
        for (limit, replicas, expected) in [
            ("25%", 10, 2),
            ("20%", 3, 1),
            ("10%", 3, 1),
            ("100%", 3, 3),
            ("150%", 10, 15),
        ] {
            let limit = Some(IntOrString::String(limit.into()));
            let mut spec = StatefulSetSpec {
                replicas: Some(replicas),
                ..StatefulSetSpec::default()
            };
            spec.scale_strategy.max_unavailable = limit.clone();
            spec.update_strategy.rolling_update = Some(RollingUpdate {
                max_unavailable: limit,
                ..RollingUpdate::default()
            });
            let limits = Limits::of(&spec);
            assert_eq!(limits.max_unavailable, expected);
            assert_eq!(limits.scale_max_unavailable, Some(expected));
        }
    }

    #[test]
    fn what_is_missing_has_its_default() {
        let expected = Limits {
            replicas: 1,
            ordered: true,
            partition: 0,
            max_unavailable: 1,
            scale_max_unavailable: None,
            min_ready_seconds: 0,
        };
        assert_eq!(Limits::of(&StatefulSetSpec::default()), expected);
    }
}
