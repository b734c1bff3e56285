//! Results of the reconciles, for metrics and for the error of a manager that does not start.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// Results of the reconciles so far, as metrics.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub(super) failures: Counter,
    pub(super) last_success: Gauge,
    pub(super) dropped: Gauge,
    last_failure: Arc<Mutex<Option<String>>>,
}

impl Progress {
    /// Error of the last reconcile; `None` if it succeeded.
    pub fn last_failure(&self) -> Option<String> {
        self.last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn finished(&self, failure: Option<String>) {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Adds the metrics to `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let prefix = |name: &str| format!("webhook_controller_{name}");
        let failures = self.failures.clone();
        registry.register(prefix("pass_failures"), "Passes that failed", failures);
        let last = self.last_success.clone();
        let name = prefix("last_success_timestamp_seconds");
        registry.register(name, "When a pass last succeeded", last);
        let dropped = self.dropped.clone();
        let help = "Webhooks left out because their path has no handler or their feature gate is off";
        registry.register(prefix("dropped_webhooks"), help, dropped);
    }
}
