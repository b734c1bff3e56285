//! Metrics of the steps of an admission review of a new pod.

#![allow(clippy::disallowed_methods, reason = "metrics measure real time")]

use std::time::{Duration, Instant};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

/// Buckets in seconds. A review takes microseconds; a step that takes much longer waits for a lookup.
const SECONDS: [f64; 10] = [
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.01, 0.1,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Step {
    step: &'static str,
    result: &'static str,
}

/// Metrics of new pods. Cloning shares them.
#[derive(Clone, Debug)]
pub struct PodMetrics {
    steps: Family<Step, Histogram>,
    trials: Family<Trial, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Trial {
    result: &'static str,
}

fn histogram() -> Histogram {
    Histogram::new(SECONDS)
}

impl PodMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            steps: Family::new_with_constructor(histogram),
            trials: Family::default(),
        };
        registry.register(
            "kruise_pod_webhook_step_duration_seconds",
            "Time of one step of a pod's review, by what came of it: changed, unchanged, denied, or asked for something \
             that has to be looked up first",
            metrics.steps.clone(),
        );
        registry.register(
            "kruise_pod_template_trials",
            "Pod templates that the API server was asked about, by what it said: accepted or refused; forbidden and \
             unanswered are no verdict",
            metrics.trials.clone(),
        );
        metrics
    }

    /// Counts a pod template that the API server was asked about.
    pub fn tried(&self, result: &'static str) {
        self.trials.get_or_create(&Trial { result }).inc();
    }

    /// Starts to measure the steps of one review.
    pub fn review(&self) -> Review<'_> {
        Review {
            metrics: self,
            since: Instant::now(),
        }
    }
}

/// Measures the steps of one review.
#[derive(Debug)]
pub struct Review<'m> {
    metrics: &'m PodMetrics,
    since: Instant,
}

impl Review<'_> {
    /// Records the end of a step.
    pub fn ended(&mut self, step: &'static str, result: &'static str) {
        let now = Instant::now();
        let took: Duration = now.saturating_duration_since(self.since);
        self.since = now;
        let label = Step { step, result };
        self.metrics
            .steps
            .get_or_create(&label)
            .observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::PodMetrics;

    #[test]
    fn steps_are_counted_by_their_results() {
        let mut registry = Registry::default();
        let metrics = PodMetrics::register(&mut registry);
        let mut review = metrics.review();
        review.ended("sidecars", "changed");
        review.ended("launch", "unchanged");
        metrics.review().ended("sidecars", "changed");
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "kruise_pod_webhook_step_duration_seconds_count{step=\"sidecars\",result=\"changed\"} 2",
            "kruise_pod_webhook_step_duration_seconds_count{step=\"launch\",result=\"unchanged\"} 1",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
    }
}
