//! What a specification allows, as numbers of nodes. Percentages are of the nodes that should have a pod now.

use go_compat::{IntOrString, Rounding};
use kruise_api::daemonset::{DaemonSetSpec, RollingUpdate};

/// No cluster has as many nodes. Larger limits are accepted, and mean the same.
const MANY: i32 = 1 << 24;

/// Pods that are created, deleted or updated at a time, by default.
const BURST: i32 = 250;

/// The limits that a specification sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes that should have a pod.
    pub desired: i32,
    /// Most pods created in one step, and most deleted, and most updated in place.
    pub burst: i32,
    /// Nodes that keep their old pods.
    pub partition: i32,
    /// Most nodes without an available pod for an update.
    pub max_unavailable: i32,
    /// Most nodes with an old and a new pod; 0 is no surge.
    pub max_surge: i32,
    /// Seconds that a pod must be Ready to be available.
    pub min_ready_seconds: i32,
}

impl Limits {
    /// Reads the limits. What is missing has its default.
    pub fn of(spec: &DaemonSetSpec, desired: i32) -> Self {
        let none = RollingUpdate::default();
        let rolling = spec.update_strategy.rolling_update.as_ref().unwrap_or(&none);
        let up = |limit: Option<&IntOrString>| {
            limit.map_or(0, |limit| limit.scaled_b(desired, Rounding::Up).clamp(0, MANY))
        };
        let down = |limit: &IntOrString| limit.scaled_b(desired, Rounding::Down).clamp(0, MANY);
        let max_surge = if surges(spec) {
            up(rolling.max_surge.as_ref())
        } else {
            0
        };
        let max_unavailable = up(rolling.max_unavailable.as_ref());
        Self {
            desired,
            // A step of nothing would hold the set up for good.
            burst: spec.burst_replicas.as_ref().map_or(BURST, down).max(1),
            partition: rolling.partition.as_ref().map_or(0, down),
            max_unavailable: if max_surge == 0 {
                max_unavailable.max(1)
            } else {
                max_unavailable
            },
            max_surge,
            min_ready_seconds: spec.min_ready_seconds.max(0),
        }
    }
}

/// Does an update create the new pod of a node before it deletes the old one?
pub(super) fn surges(spec: &DaemonSetSpec) -> bool {
    let rolling = spec.update_strategy.rolling_update.as_ref();
    let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
    let one = surge.map_or(0, |surge| surge.scaled_b(1, Rounding::Up));
    is_rolling(spec) && one > 0
}

/// Are pods updated by the set, and not by those who delete them?
pub(super) fn is_rolling(spec: &DaemonSetSpec) -> bool {
    matches!(&*spec.update_strategy.kind, "" | "RollingUpdate")
}

#[cfg(test)]
mod tests {
    use kruise_api::daemonset::UpdateStrategy;

    use super::*;

    fn limits(burst: Option<IntOrString>, rolling: RollingUpdate, desired: i32) -> Limits {
        let spec = DaemonSetSpec {
            burst_replicas: burst,
            update_strategy: UpdateStrategy {
                kind: String::new(),
                rolling_update: Some(rolling),
            },
            ..DaemonSetSpec::default()
        };
        Limits::of(&spec, desired)
    }

    #[allow(clippy::unnecessary_wraps, reason = "as a specification holds it")]
    fn text(value: &str) -> Option<IntOrString> {
        Some(IntOrString::String(value.into()))
    }

    #[test]
    fn what_is_missing_has_its_default() {
        let expected = Limits {
            desired: 5,
            burst: 250,
            partition: 0,
            max_unavailable: 1,
            max_surge: 0,
            min_ready_seconds: 0,
        };
        assert_eq!(Limits::of(&DaemonSetSpec::default(), 5), expected);
        assert_eq!(limits(None, RollingUpdate::default(), 5), expected);
    }

    #[test]
    fn pods_out_of_service_are_rounded_up_and_pods_kept_are_rounded_down() {
        let rolling = RollingUpdate {
            max_unavailable: text("30%"),
            partition: text("50%"),
            ..RollingUpdate::default()
        };
        let limits = limits(text("50%"), rolling, 5);
        assert_eq!(
            (limits.max_unavailable, limits.partition, limits.burst),
            (2, 2, 2)
        );
    }

    #[test]
    fn a_step_is_never_of_nothing() {
        for burst in [
            text("10%"),
            text("many"),
            Some(IntOrString::Int(0)),
            Some(IntOrString::Int(-3)),
        ] {
            assert_eq!(
                limits(burst.clone(), RollingUpdate::default(), 5).burst,
                1,
                "{burst:?}"
            );
        }
    }

    #[test]
    fn with_surge_no_old_pod_goes_before_the_new_one_is_there() {
        let surging = RollingUpdate {
            max_surge: text("10%"),
            max_unavailable: Some(IntOrString::Int(0)),
            ..RollingUpdate::default()
        };
        let limits = limits(None, surging.clone(), 5);
        assert_eq!((limits.max_surge, limits.max_unavailable), (1, 0));
        let on_delete = DaemonSetSpec {
            update_strategy: UpdateStrategy {
                kind: "OnDelete".into(),
                rolling_update: Some(surging),
            },
            ..DaemonSetSpec::default()
        };
        assert_eq!(Limits::of(&on_delete, 5).max_surge, 0);
    }
}
