//! Metrics under the names that dashboards of Go controllers use.

pub mod objects;
mod pods;
mod process;
mod requests;

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder},
    metrics::{
        MetricType, TypedMetric, counter::Counter, family::Family, gauge::Gauge, histogram::Histogram,
    },
    registry::Registry,
};

use crate::{client, worker};
pub use pods::{PodMetrics, Review};
pub use process::Process;
pub use requests::Requests;

/// Buckets of controller-runtime's reconcile histogram, reduced to the range that occurs here, in seconds.
const SECONDS: [f64; 14] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Named {
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Controller {
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Queue {
    name: &'static str,
    controller: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;

/// Results of a reconcile that controller-runtime counts.
const RESULTS: [&str; 4] = ["success", "error", "requeue", "requeue_after"];

/// A counter whose name upstream does not end in `_total`. OpenMetrics forbids such counters, so that Go's own
/// exposition also calls them unknown.
#[derive(Clone, Debug, Default)]
struct BareCounter(Counter);

impl EncodeMetric for BareCounter {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for BareCounter {
    const TYPE: MetricType = MetricType::Unknown;
}

/// All metrics of the manager's runtime.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Of new pods.
    pub pods: PodMetrics,
    requests: Requests,
    master: Family<Named, Gauge>,
    is_leader: Gauge,
    slowpath: Family<Named, Counter>,
    objects: objects::Families,
    reconciles: Family<Outcome, Counter>,
    errors: Family<Controller, Counter>,
    terminal_errors: Family<Controller, Counter>,
    panics: Family<Controller, Counter>,
    took: Family<Controller, Histogram>,
    active: Family<Controller, Gauge>,
    concurrency: Family<Controller, Gauge>,
    depth: Family<Queue, Gauge>,
    adds: Family<Queue, Counter>,
    retries: Family<Queue, Counter>,
    waited: Family<Queue, Histogram>,
    worked: Family<Queue, Histogram>,
    unfinished: Family<Queue, Seconds>,
    longest: Family<Queue, Seconds>,
}

fn named(name: &str) -> Named {
    Named {
        name: name.to_owned(),
    }
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

impl Metrics {
    /// Registers everything, with the families that controllers declare. Counters get their `_total` from the text
    /// encoder.
    pub fn register(registry: &mut Registry, declared: &[&'static objects::Spec]) -> Self {
        let metrics = Self {
            pods: PodMetrics::register(registry),
            requests: Requests::register(registry),
            master: Family::default(),
            is_leader: Gauge::default(),
            slowpath: Family::default(),
            objects: objects::Families::register(registry, declared),
            reconciles: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            took: Family::new_with_constructor(seconds),
            active: Family::default(),
            concurrency: Family::default(),
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            waited: Family::new_with_constructor(seconds),
            worked: Family::new_with_constructor(seconds),
            unfinished: Family::default(),
            longest: Family::default(),
        };
        registry.register_collector(Box::new(Process));
        metrics.register_process(registry);
        metrics.register_reconciles(registry);
        metrics.register_queues(registry);
        metrics
    }

    fn register_process(&self, registry: &mut Registry) {
        let m = self.clone();
        registry.register("leader_election_master_status", "1 while leading", m.master);
        registry.register(
            "leader_election_slowpath",
            "Renewals that had to read the lease first",
            m.slowpath,
        );
        registry.register("kruise_manager_is_leader", "1 while leading", m.is_leader);
    }

    fn register_reconciles(&self, registry: &mut Registry) {
        let m = self.clone();
        registry.register(
            "controller_runtime_reconcile",
            "Finished reconciles by result",
            m.reconciles,
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Reconciles that ended in an error",
            m.errors,
        );
        registry.register(
            "controller_runtime_terminal_reconcile_errors",
            "Reconciles that ended in an error which is not tried again; there are none",
            m.terminal_errors,
        );
        registry.register(
            "controller_runtime_reconcile_panics",
            "Reconciles that ended in a panic",
            m.panics,
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Time of one reconcile",
            m.took,
        );
        registry.register(
            "controller_runtime_active_workers",
            "Reconciles under way",
            m.active,
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Workers",
            m.concurrency,
        );
    }

    fn register_queues(&self, registry: &mut Registry) {
        let m = self.clone();
        registry.register("workqueue_depth", "Keys ready", m.depth);
        registry.register("workqueue_adds", "Keys made ready", m.adds);
        registry.register("workqueue_retries", "Delayed pushes", m.retries);
        registry.register("workqueue_queue_duration_seconds", "Time a key waited", m.waited);
        registry.register(
            "workqueue_work_duration_seconds",
            "Time a key was worked on",
            m.worked,
        );
        registry.register(
            "workqueue_unfinished_work_seconds",
            "Sum of times of work under way",
            m.unfinished,
        );
        registry.register(
            "workqueue_longest_running_processor_seconds",
            "Longest work under way",
            m.longest,
        );
    }

    /// This process competes for the lease, and does not lead yet.
    pub fn competing(&self, lease: &str) {
        self.leading(lease, false);
        self.slowpath.get_or_create(&named(lease)).inc_by(0);
    }

    /// Sets whether this process leads.
    pub fn leading(&self, lease: &str, leads: bool) {
        self.is_leader.set(i64::from(leads));
        self.master.get_or_create(&named(lease)).set(i64::from(leads));
    }

    /// A renewal had to read the lease first.
    pub fn renewed_slowly(&self, lease: &str) {
        self.slowpath.get_or_create(&named(lease)).inc();
    }

    /// A reconcile of this controller panicked.
    pub fn panicked(&self, controller: &'static str) {
        self.panics.get_or_create(&Controller { controller }).inc();
    }

    /// The series of a family that was declared.
    pub fn objects(&self, declared: &'static objects::Spec) -> objects::Series {
        self.objects.series(declared)
    }

    /// The observer of one controller with this many workers. Expectations that time out count in the family
    /// `overdue`, by namespace and name. Its counters start at zero: otherwise the first increment would not be
    /// visible as an increase.
    pub fn controller(
        &self,
        controller: &'static str,
        workers: usize,
        overdue: Option<&'static objects::Spec>,
    ) -> Arc<dyn worker::Observer> {
        let label = Controller { controller };
        self.concurrency.get_or_create(&label).set(workers as i64);
        let active = self.active.get_or_create_owned(&label);
        active.set(0);
        for counters in [&self.errors, &self.terminal_errors, &self.panics] {
            counters.get_or_create(&label).inc_by(0);
        }
        for result in RESULTS {
            self.reconciles
                .get_or_create(&Outcome { controller, result })
                .inc_by(0);
        }
        let queue = Queue {
            name: controller,
            controller,
        };
        Arc::new(ControllerMetrics {
            metrics: self.clone(),
            controller,
            overdue: overdue.map(|spec| self.objects(spec)),
            active,
            depth: self.depth.get_or_create_owned(&queue),
            adds: self.adds.get_or_create_owned(&queue),
            retries: self.retries.get_or_create_owned(&queue),
            unfinished: self.unfinished.get_or_create_owned(&queue),
            longest: self.longest.get_or_create_owned(&queue),
            seen: Mutex::new(kube_queue::Counters::default()),
        })
    }
}

impl client::Observer for Metrics {
    fn requested(&self, method: &str, host: &str, code: &str) {
        self.requests.requested(method, host, code);
    }
}

struct ControllerMetrics {
    metrics: Metrics,
    controller: &'static str,
    overdue: Option<objects::Series>,
    // Set by each reconcile, without a lookup by label.
    active: Gauge,
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    unfinished: Seconds,
    longest: Seconds,
    /// Totals already counted: the queue reports totals, a counter takes increments.
    seen: Mutex<kube_queue::Counters>,
}

impl ControllerMetrics {
    fn queue(&self) -> Queue {
        Queue {
            name: self.controller,
            controller: self.controller,
        }
    }
}

impl worker::Observer for ControllerMetrics {
    fn panicked(&self) {
        self.metrics.panicked(self.controller);
    }

    fn overdue(&self, namespace: &str, name: &str) {
        if let Some(overdue) = &self.overdue {
            overdue.count(&[namespace, name]);
        }
    }

    fn reconciled(&self, result: &'static str, took: Duration) {
        let controller = self.controller;
        let label = Controller { controller };
        self.metrics
            .reconciles
            .get_or_create(&Outcome { controller, result })
            .inc();
        if result == "error" {
            self.metrics.errors.get_or_create(&label).inc();
        }
        self.metrics
            .took
            .get_or_create(&label)
            .observe(took.as_secs_f64());
        self.metrics
            .worked
            .get_or_create(&self.queue())
            .observe(took.as_secs_f64());
    }

    fn queued(&self, depth: usize, counters: kube_queue::Counters, unfinished: kube_queue::Unfinished) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.adds.inc_by(counters.adds.saturating_sub(seen.adds));
        self.retries.inc_by(counters.retries.saturating_sub(seen.retries));
        *seen = counters;
        self.depth.set(depth as i64);
        self.unfinished.set(unfinished.total.as_secs_f64());
        self.longest.set(unfinished.longest.as_secs_f64());
        self.active.set(unfinished.count as i64);
    }

    fn popped(&self, waited: Duration) {
        self.metrics
            .waited
            .get_or_create(&self.queue())
            .observe(waited.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::Metrics;
    use crate::client::Observer as _;

    #[test]
    fn names_and_labels_are_those_of_go_controllers() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, &[]);
        metrics.requested("GET", "h", "200");
        metrics.competing("kruise-manager");
        metrics.leading("kruise-manager", true);
        metrics.renewed_slowly("kruise-manager");
        let controller = metrics.controller("web-controller", 3, None);
        metrics.panicked("web-controller");
        controller.reconciled("success", Duration::from_millis(2));
        let counters = kube_queue::Counters { adds: 2, retries: 1 };
        controller.queued(1, counters, kube_queue::Unfinished::default());
        controller.queued(1, counters, kube_queue::Unfinished::default());
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"h\"} 1",
            "leader_election_master_status{name=\"kruise-manager\"} 1",
            "kruise_manager_is_leader 1",
            "leader_election_slowpath_total{name=\"kruise-manager\"} 1",
            "controller_runtime_reconcile_total{controller=\"web-controller\",result=\"success\"} 1",
            "controller_runtime_reconcile_total{controller=\"web-controller\",result=\"requeue_after\"} 0",
            "controller_runtime_reconcile_errors_total{controller=\"web-controller\"} 0",
            "controller_runtime_terminal_reconcile_errors_total{controller=\"web-controller\"} 0",
            "controller_runtime_reconcile_panics_total{controller=\"web-controller\"} 1",
            "controller_runtime_active_workers{controller=\"web-controller\"} 0",
            "controller_runtime_max_concurrent_reconciles{controller=\"web-controller\"} 3",
            "workqueue_adds_total{name=\"web-controller\",controller=\"web-controller\"} 2",
            "controller_runtime_reconcile_time_seconds_count{controller=\"web-controller\"} 1",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_standby_reports_that_it_does_not_lead() {
        let mut registry = Registry::default();
        Metrics::register(&mut registry, &[]).competing("l");
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "leader_election_master_status{name=\"l\"} 0",
            "leader_election_slowpath_total{name=\"l\"} 0",
            "kruise_manager_is_leader 0",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
    }

    #[test]
    fn the_process_is_described_at_each_scrape() {
        let mut registry = Registry::default();
        Metrics::register(&mut registry, &[]);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let value = |name: &str| {
            let rest = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            rest.unwrap_or_else(|| panic!("{name}\n{text}"))
                .parse::<f64>()
                .unwrap()
        };
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(value("process_resident_memory_bytes") > 100_000.0);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 1.0);
        let age = crate::Clock::SYSTEM.now().as_second() as f64 - value("process_start_time_seconds");
        assert!((-2.0..36_000.0).contains(&age), "{age}");
    }
}
