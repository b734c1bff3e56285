//! Is a pod ready, and for how long?

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::names::IN_PLACE_UPDATE_READY;
use kruise_views::{Phase, PodView, Truth};

use crate::lifecycle::State;

/// How far a pod is on its way into service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Not running, not Ready, or in the middle of an in-place update.
    NotReady,
    /// Ready, but its lifecycle state keeps it out of service.
    Withheld,
    /// Ready, but not yet for `minReadySeconds`; available after this long.
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
    if min_ready_seconds <= 0 {
        return Service::Available;
    }
    let Some(since) = pod.condition("Ready").and_then(|ready| ready.since) else {
        // Ready, but not known since when.
        return Service::Withheld;
    };
    // Kubernetes stores whole seconds, so "for at least" and "for more than" differ by less than the clock's grain.
    let due = since.as_second().saturating_add(i64::from(min_ready_seconds));
    let left_ms = due.saturating_mul(1000).saturating_sub(now.as_millisecond());
    if left_ms <= 0 {
        Service::Available
    } else {
        Service::Settling(Duration::from_millis(left_ms.unsigned_abs()))
    }
}

/// Running, Ready, and not marked unready for an in-place update.
pub fn is_ready(pod: &PodView) -> bool {
    pod.phase == Phase::Running
        && pod.is_true("Ready")
        && pod
            .condition(IN_PLACE_UPDATE_READY)
            .is_none_or(|condition| condition.status == Truth::True)
}
