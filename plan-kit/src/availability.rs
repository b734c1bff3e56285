//! Is a pod ready, and for how long?

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::names::{ALL_CONTAINERS_RESTARTING, IN_PLACE_UPDATE_READY};
use kruise_views::{Phase, PodView, Truth};

use crate::{injected::is_injected, lifecycle::State};

/// How far a pod is on its way into service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Not running, not Ready, or in the middle of an in-place update.
    NotReady,
    /// Ready, but its lifecycle state keeps it out of service.
    Withheld,
    /// Ready, but not yet for `minReadySeconds`, or not for certain; available after this long.
    Settling(Duration),
    /// Counts.
    Available,
}

impl Service {
    /// Ready, in any lifecycle state.
    pub fn is_ready(self) -> bool {
        self != Self::NotReady
    }

    /// Counts as available?
    pub fn is_available(self) -> bool {
        self == Self::Available
    }
}

/// Classifies a pod at this instant.
pub fn service(pod: &PodView, min_ready_seconds: i32, now: Timestamp) -> Service {
    service_in(State::of(pod), pod, min_ready_seconds, now)
}

/// As [`service`], for a caller that knows the lifecycle state.
pub fn service_in(state: State, pod: &PodView, min_ready_seconds: i32, now: Timestamp) -> Service {
    if !is_ready(pod) {
        return Service::NotReady;
    }
    if !state.serves() {
        return Service::Withheld;
    }
    let unproven = settling(pod, now);
    if min_ready_seconds <= 0 {
        return unproven.map_or(Service::Available, Service::Settling);
    }
    let Some(since) = pod.condition("Ready").and_then(|ready| ready.since) else {
        // Ready, but not known since when.
        return Service::Withheld;
    };
    // Kubernetes stores whole seconds, so "for at least" and "for more than" differ by less than the clock's grain.
    let due = since.as_second().saturating_add(i64::from(min_ready_seconds));
    let left_ms = due.saturating_mul(1000).saturating_sub(now.as_millisecond());
    let young = u64::try_from(left_ms).ok().filter(|left| *left > 0);
    let left = young.map(Duration::from_millis).into_iter().chain(unproven).max();
    left.map_or(Service::Available, Service::Settling)
}

/// Running and Ready in any lifecycle state, and no report of the node that may be of an earlier container.
pub fn is_ready_for_certain(pod: &PodView, now: Timestamp) -> bool {
    is_ready(pod) && settling(pod, now).is_none()
}

/// For how long the node may still report of a container that it is ready because the one before it was.
pub fn settling(pod: &PodView, now: Timestamp) -> Option<Duration> {
    if is_injected("ReadinessInherited") {
        return None;
    }
    let left = pod
        .trusted_at?
        .as_millisecond()
        .saturating_sub(now.as_millisecond());
    u64::try_from(left)
        .ok()
        .filter(|left| *left > 0)
        .map(Duration::from_millis)
}

/// Running, Ready, not marked unready for an in-place update, and not about to restart all of its containers.
fn is_ready(pod: &PodView) -> bool {
    pod.phase == Phase::Running
        && pod.is_true("Ready")
        && !pod.is_true(ALL_CONTAINERS_RESTARTING)
        && pod
            .condition(IN_PLACE_UPDATE_READY)
            .is_none_or(|condition| condition.status == Truth::True)
}

#[cfg(test)]
mod tests {
    use kruise_views::{ConditionView, PodView};

    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn pod(conditions: &[(&str, Truth)]) -> PodView {
        let condition = |(kind, status): &(&str, Truth)| ConditionView {
            kind: (*kind).into(),
            status: *status,
            since: Some(START),
            ..ConditionView::default()
        };
        PodView {
            phase: Phase::Running,
            conditions: conditions.iter().map(condition).collect(),
            ..PodView::default()
        }
    }

    #[test]
    fn a_pod_that_restarts_all_its_containers_is_not_available() {
        for (status, expected) in [
            (Truth::True, Service::NotReady),
            (Truth::False, Service::Available),
        ] {
            let pod = pod(&[("Ready", Truth::True), ("AllContainersRestarting", status)]);
            assert_eq!(service(&pod, 0, START), expected, "{status:?}");
        }
    }

    #[test]
    fn a_readiness_that_may_be_of_the_container_before_counts_when_it_is_certain() {
        let mut pod = pod(&[("Ready", Truth::True)]);
        pod.trusted_at = Some(at(7));
        let left = |seconds| Service::Settling(Duration::from_secs(seconds));
        assert_eq!(service(&pod, 0, at(5)), left(2));
        assert_eq!(service(&pod, 6, at(5)), left(2), "the longer of the two");
        assert_eq!(service(&pod, 9, at(5)), left(4), "the longer of the two");
        assert_eq!(service(&pod, 0, at(7)), Service::Available);
    }
}
