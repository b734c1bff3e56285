//! `cargo xtask bench`: what the life of one CloneSet costs on a real API server.
//!
//! Seconds are wall time from the change to the status that says it is done, CPU and memory are the manager's own
//! process, requests come from the server's audit log: every answer code counts, leases, watches and lists do not.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use kruise_e2e::audit::{AuditLog, Class, Counts, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::{process, wait};
use kruise_tour::stage::is_done;
use serde_json::{Value, json};

use crate::installation::{Executable, Installation};
use crate::interrupt;
use crate::lab::binaries::Binaries;
use crate::lab::folder;

/// The CloneSet in the version that every release serves.
const RESOURCE: &str = "clonesets.v1alpha1.apps.kruise.io";
/// Longest time of a phase.
const LIMIT: Duration = Duration::from_mins(15);

/// What is measured, and the bars that fail the bench when exceeded.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Pods.
    #[arg(long, default_value_t = 1000)]
    replicas: u32,
    /// Simulated nodes.
    #[arg(long, default_value_t = 50)]
    nodes: u32,
    /// Print one JSON object per phase.
    #[arg(long)]
    json: bool,
    /// Most requests per pod of the creation.
    #[arg(long)]
    max_requests_create: Option<f64>,
    /// Most requests per pod of the update in place.
    #[arg(long)]
    max_requests_in_place: Option<f64>,
    /// Most requests per pod of the update by recreation.
    #[arg(long)]
    max_requests_recreate: Option<f64>,
    /// Most memory, in MiB.
    #[arg(long)]
    max_memory: Option<u64>,
}

struct Bench<'a> {
    options: &'a Options,
    kubectl: Kubectl,
    installation: Installation,
    audit: AuditLog,
    exceeded: Vec<String>,
}

/// Runs all phases on a fresh cluster.
pub(crate) fn run(options: &Options) -> Result<()> {
    let binaries = Binaries::find_or_build()?;
    let kruise = Executable::default().path()?;
    let installation = Installation::up(&binaries, &kruise, folder(None, "bench"), options.nodes)?;
    let mut bench = Bench {
        options,
        kubectl: installation.kubectl(),
        audit: installation.audit()?,
        installation,
        exceeded: Vec::new(),
    };
    bench.phases()?;
    if bench.exceeded.is_empty() {
        return Ok(());
    }
    bail!("bars exceeded: {}", bench.exceeded.join("; "))
}

impl Bench<'_> {
    fn phases(&mut self) -> Result<()> {
        let all = self.options.replicas;
        let tenth = all / 10;
        let bars = (
            self.options.max_requests_create,
            self.options.max_requests_in_place,
        );
        let set = bench_set(all);
        self.phase("create", all, bars.0, &json!({"readyReplicas": all}), |kubectl| {
            kubectl.apply(&set).map(drop)
        })?;
        let updated = json!({"updatedReadyReplicas": all, "replicas": all});
        let image = json!({"spec": {"template": template("nginx:2", "b")}});
        self.phase("in-place", all, bars.1, &updated, |kubectl| {
            kubectl.patch(RESOURCE, "bench", &image)
        })?;
        let variable = json!({"spec": {"template": template("nginx:2", "c")}});
        let bar = self.options.max_requests_recreate;
        self.phase("recreate", all, bar, &updated, |kubectl| {
            kubectl.patch(RESOURCE, "bench", &variable)
        })?;
        let scale = json!({"spec": {"replicas": tenth}});
        let scaled = json!({"replicas": tenth});
        self.phase("scale-down", all - tenth, None, &scaled, |kubectl| {
            kubectl.patch(RESOURCE, "bench", &scale)
        })
    }

    fn phase(
        &mut self,
        name: &str,
        pods: u32,
        bar: Option<f64>,
        done: &Value,
        act: impl FnOnce(&Kubectl) -> Result<()>,
    ) -> Result<()> {
        let pid = self.installation.manager.pid();
        self.audit.read_new(MANAGER)?;
        let (cpu, start) = (process::cpu_seconds(pid)?, Instant::now());
        act(&self.kubectl)?;
        interrupt::wait_until_true(name, LIMIT, || {
            is_done(&self.kubectl.get(RESOURCE, "bench")?, done)
        })?;
        let seconds = start.elapsed().as_secs_f64();
        // Late events and status writes belong to the phase that caused them.
        wait::observe_for(Duration::from_secs(2));
        let cpu = process::cpu_seconds(pid)? - cpu;
        let counts = Counts::of(&self.audit.read_new(MANAGER)?);
        let memory = process::peak_memory_kib(pid)? / 1024;
        let requests = counts.total(Class::Counted) as f64 / f64::from(pods);
        let cpu_ms = cpu * 1000.0 / f64::from(pods);
        if self.options.json {
            let line = json!({"phase": name, "pods": pods, "seconds": seconds, "cpuSeconds": cpu, "cpuMsPerPod": cpu_ms,
                "peakMiB": memory, "requestsPerPod": requests, "requests": counts.to_string()});
            println!("{line}");
        } else {
            println!(
                "{name}: {seconds:.1} s, CPU {cpu:.2} s ({cpu_ms:.2} ms a pod), peak {memory} MiB, \
                 {requests:.2} requests a pod: {counts}"
            );
        }
        self.exceeded
            .extend(exceeded(name, "requests a pod", requests, bar));
        self.exceeded.extend(exceeded(
            name,
            "MiB",
            memory as f64,
            self.options.max_memory.map(|bar| bar as f64),
        ));
        Ok(())
    }
}

fn exceeded(phase: &str, what: &str, value: f64, bar: Option<f64>) -> Option<String> {
    bar.filter(|bar| value > *bar)
        .map(|bar| format!("{phase}: {value:.2} {what}, bar {bar}"))
}

fn template(image: &str, variable: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "bench"}},
        "spec": {"containers": [{
            "name": "main",
            "image": image,
            "env": [{"name": "A", "value": variable}],
            "resources": {"requests": {"cpu": "1m"}},
        }]},
    })
}

fn bench_set(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": "bench"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "bench"}},
            "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": "20%"},
            "template": template("nginx:1", "b"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_value_above_its_bar_fails() {
        assert_eq!(exceeded("create", "requests a pod", 2.05, Some(2.05)), None);
        assert_eq!(exceeded("create", "requests a pod", 9.0, None), None);
        assert!(
            exceeded("create", "requests a pod", 2.06, Some(2.05))
                .unwrap()
                .contains("2.06")
        );
    }
}
