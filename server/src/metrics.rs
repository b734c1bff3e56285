//! Metrics of the webhook server under the names of Go's controller runtime.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::StatusCode;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// The usual buckets, and smaller ones: handlers here take less than a millisecond.
const SECONDS: [f64; 13] = [
    0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Webhook {
    webhook: Arc<str>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    webhook: Arc<str>,
    code: u16,
}

/// Counts requests by webhook, which is the path of a route: a path without a route is not counted.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<Outcome, Counter>,
    latency: Family<Webhook, Histogram>,
    in_flight: Family<Webhook, Gauge>,
    panics: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            latency: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            in_flight: Family::default(),
            panics: Counter::default(),
        }
    }
}

impl Metrics {
    /// Adds the metrics to `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let prefix = |name: &str| format!("controller_runtime_webhook_{name}");
        registry.register(
            prefix("requests"),
            "Requests by HTTP status code",
            self.requests.clone(),
        );
        registry.register(
            prefix("latency_seconds"),
            "Duration of requests",
            self.latency.clone(),
        );
        let in_flight = self.in_flight.clone();
        registry.register(prefix("requests_in_flight"), "Requests being served", in_flight);
        registry.register(prefix("panics"), "Panics of handlers", self.panics.clone());
    }

    /// Handlers that panicked so far.
    pub fn panics(&self) -> u64 {
        self.panics.get()
    }

    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }

    /// Begins a request; it counts as in flight until the result is dropped.
    pub fn begin(&self, webhook: &str) -> Timer<'_> {
        let labels = Webhook {
            webhook: webhook.into(),
        };
        self.in_flight.get_or_create(&labels).inc();
        Timer {
            metrics: self,
            labels,
            since: Instant::now(),
        }
    }
}

/// A request in flight.
pub struct Timer<'a> {
    metrics: &'a Metrics,
    labels: Webhook,
    since: Instant,
}

impl Timer<'_> {
    /// Counts the request as answered. One that is dropped without was abandoned by its client.
    pub fn answered(self, status: StatusCode) {
        let took: Duration = self.since.elapsed();
        let outcome = Outcome {
            webhook: self.labels.webhook.clone(),
            code: status.as_u16(),
        };
        self.metrics.requests.get_or_create(&outcome).inc();
        self.metrics
            .latency
            .get_or_create(&self.labels)
            .observe(took.as_secs_f64());
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.metrics.in_flight.get_or_create(&self.labels).dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_controller_runtime() {
        let metrics = Metrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let abandoned = metrics.begin("/a");
        metrics.begin("/b").answered(StatusCode::BAD_REQUEST);
        metrics.panicked();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "controller_runtime_webhook_requests_total{webhook=\"/b\",code=\"400\"} 1\n",
            "controller_runtime_webhook_latency_seconds_count{webhook=\"/b\"} 1\n",
            "controller_runtime_webhook_requests_in_flight{webhook=\"/a\"} 1\n",
            "controller_runtime_webhook_requests_in_flight{webhook=\"/b\"} 0\n",
            "controller_runtime_webhook_panics_total 1\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        drop(abandoned);
        text.clear();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(!text.contains("requests_total{webhook=\"/a\""), "{text}");
    }
}
