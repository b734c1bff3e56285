//! Metrics of the steps of an admission review of a new pod.

#![allow(clippy::disallowed_methods, reason = "metrics measure real time")]

use std::time::{Duration, Instant};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
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
    side_effects: Family<SideEffect, Counter>,
    open: Family<Webhook, Gauge>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Webhook {
    webhook: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SideEffect {
    effect: &'static str,
    result: &'static str,
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
            side_effects: Family::default(),
            open: Family::default(),
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
        registry.register(
            "kruise_webhook_side_effects",
            "Charges of budgets, counts of pods and wider match conditions that reviews asked for, by what came of them: real \
             if the request was carried out, vain if nothing came of it, held if it was not believed because others before it \
             were vain",
            metrics.side_effects.clone(),
        );
        registry.register(
            "kruise_webhook_called_for_all",
            "1 if a webhook with a derived match condition is called for the requests of the whole cluster; only of the leader",
            metrics.open.clone(),
        );
        metrics
    }

    /// Counts a pod template that the API server was asked about.
    pub fn tried(&self, result: &'static str) {
        self.trials.get_or_create(&Trial { result }).inc();
    }

    /// Counts a side effect of a review.
    pub fn side_effect(&self, effect: &'static str, result: &'static str) {
        self.side_effects
            .get_or_create(&SideEffect { effect, result })
            .inc();
    }

    /// Reports whether a webhook is called for the requests of the whole cluster.
    pub fn called_for_all(&self, webhook: &'static str, is_open: bool) {
        self.open
            .get_or_create(&Webhook { webhook })
            .set(i64::from(is_open));
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
