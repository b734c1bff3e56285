//! A pod for the tests of this crate.

use jiff::Timestamp;
use kruise_views::{ConditionView, PodView, Truth};

/// With a fraction, which the wire drops.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T03:04:05.678Z".parse().unwrap()
}

/// A condition without time or reason.
pub(crate) fn condition(kind: &str, status: Truth) -> ConditionView {
    ConditionView {
        kind: kind.into(),
        status,
        ..ConditionView::default()
    }
}

/// In service, with both gates.
pub(crate) fn pod() -> PodView {
    PodView {
        gates: Box::new(["InPlaceUpdateReady".into(), "KruisePodReady".into()]),
        conditions: Box::new([
            condition("Ready", Truth::True),
            condition("ContainersReady", Truth::True),
            condition("InPlaceUpdateReady", Truth::True),
            condition("KruisePodReady", Truth::True),
        ]),
        ..PodView::default()
    }
}
