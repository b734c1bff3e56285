//! What `/metrics` says: `kruise_daemon_*`, `rest_client_requests_total` and the process.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kruise_agent_core::{Failure, Filesystem, ProbeResult, PullError};
use kruise_runtime::metrics::{Process, Requests};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Seconds that pulls take.
const SECONDS: [f64; 11] = [0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Call {
    call: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Write {
    resource: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Probe {
    handler: &'static str,
    result: &'static str,
}

/// Metrics of an agent. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) requests: Requests,
    pulls: Family<Outcome, Counter>,
    pulling: Gauge,
    took: Histogram,
    calls: Family<Call, Counter>,
    writes: Family<Write, Counter>,
    hooks: Family<Outcome, Counter>,
    probes: Family<Probe, Counter>,
    runtimes: Gauge,
    disk_free: Gauge<f64, AtomicU64>,
    disk_size: Gauge<f64, AtomicU64>,
    disk_unmeasured: Gauge,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        registry.register_collector(Box::new(Process));
        let metrics = Self {
            requests: Requests::register(registry),
            pulls: Family::default(),
            pulling: Gauge::default(),
            took: Histogram::new(SECONDS),
            calls: Family::default(),
            writes: Family::default(),
            hooks: Family::default(),
            probes: Family::default(),
            runtimes: Gauge::default(),
            disk_free: Gauge::default(),
            disk_size: Gauge::default(),
            disk_unmeasured: Gauge::default(),
        };
        let m = metrics.clone();
        let name = |name: &str| format!("kruise_daemon_{name}");
        registry.register(name("image_pulls"), "Attempts to pull an image", m.pulls);
        registry.register(
            name("image_pulls_in_progress"),
            "Attempts to pull an image that have not ended",
            m.pulling,
        );
        registry.register(
            name("image_pull_duration_seconds"),
            "Time of an attempt that succeeded",
            m.took,
        );
        registry.register(
            name("runtime_calls"),
            "Other calls of the container runtime",
            m.calls,
        );
        registry.register(
            name("status_writes"),
            "Writes of the status of NodeImages, pods, ContainerRecreateRequests and NodePodProbes",
            m.writes,
        );
        registry.register(
            name("pre_stop_hooks"),
            "PreStop hooks that were run before a container was stopped",
            m.hooks,
        );
        registry.register(
            name("probes"),
            "Probes of PodProbeMarkers that were run",
            m.probes,
        );
        registry.register(
            name("container_runtimes"),
            "Container runtimes that work",
            m.runtimes,
        );
        registry.register(
            name("image_filesystem_free_bytes"),
            "Free bytes of the file system with the images, when it was last measured",
            m.disk_free,
        );
        registry.register(
            name("image_filesystem_size_bytes"),
            "All bytes of the file system with the images",
            m.disk_size,
        );
        registry.register(
            name("image_filesystem_unmeasured"),
            "1 if the file system with the images could not be measured, so that images are pulled whatever is free",
            m.disk_unmeasured,
        );
        metrics
    }

    pub(crate) fn pull_begins(&self) {
        self.pulling.inc();
    }

    pub(crate) fn pull_ended(&self, result: &Result<Box<str>, PullError>, took: Duration) {
        self.pulling.dec();
        let result = match result {
            Ok(_) => "succeeded",
            Err(PullError::TimedOut) => "timed_out",
            Err(PullError::Cancelled) => "cancelled",
            Err(PullError::Failure(_)) => "failed",
        };
        if result == "succeeded" {
            self.took.observe(took.as_secs_f64());
        }
        self.pulls.get_or_create(&Outcome { result }).inc();
    }

    /// Counts a call of the runtime.
    pub(crate) fn called<T, E>(&self, call: &'static str, result: &Result<T, E>) {
        let result = outcome(result);
        self.calls.get_or_create(&Call { call, result }).inc();
    }

    pub(crate) fn written<T, E>(&self, resource: &'static str, result: &Result<T, E>) {
        let result = outcome(result);
        self.writes.get_or_create(&Write { resource, result }).inc();
    }

    pub(crate) fn hook_ended<T, E>(&self, result: &Result<T, E>) {
        let result = outcome(result);
        self.hooks.get_or_create(&Outcome { result }).inc();
    }

    pub(crate) fn probed(&self, handler: &'static str, result: &ProbeResult) {
        let result = match result {
            ProbeResult::Succeeded(_) => "succeeded",
            ProbeResult::Failed(_) => "failed",
            ProbeResult::NotRun(_) => "not_run",
        };
        self.probes.get_or_create(&Probe { handler, result }).inc();
    }

    pub(crate) fn runtimes(&self, count: usize) {
        self.runtimes.set(count as i64);
    }

    /// A runtime that is away says nothing about whether its disk can be measured.
    pub(crate) fn measured(&self, result: &Result<Filesystem, Failure>) {
        match result {
            Ok(disk) => {
                self.disk_free.set(disk.free as f64);
                self.disk_size.set(disk.size as f64);
                self.disk_unmeasured.set(0);
            }
            Err(Failure::Failed(_)) => {
                self.disk_unmeasured.set(1);
            }
            Err(Failure::Unavailable(_)) => {}
        }
    }
}

fn outcome<T, E>(result: &Result<T, E>) -> &'static str {
    if result.is_ok() { "succeeded" } else { "failed" }
}
