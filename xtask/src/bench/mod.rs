//! `cargo xtask bench`, `bench-daemonsets`, `bench-start` and `bench-preflight`: what the life of workloads, the
//! start of a manager and a preflight cost on a real API server.
//!
//! Seconds are wall time from the change to the status that says it is done, CPU and memory are the manager's own
//! process, requests come from the server's audit log: every answer code counts, leases, watches and lists do not.

pub(crate) mod cloneset;
pub(crate) mod daemonsets;
mod fleet;
pub(crate) mod preflight;
pub(crate) mod start;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kruise_e2e::audit::{AuditLog, Class, Counts, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::{process, wait};
use serde_json::json;

use crate::installation::{Executable, Installation};
use crate::interrupt;
use crate::lab::binaries::Binaries;
use crate::lab::folder;

/// Longest time of a phase: 15,000 pods on 5,000 simulated nodes take two processors more than 15 minutes.
const LIMIT: Duration = Duration::from_mins(40);

/// What happens, and what it may cost.
struct Phase<'a> {
    name: &'a str,
    /// Pods that it is about.
    pods: u32,
    /// Most requests for each of them.
    bar: Option<f64>,
}

/// A fresh cluster with a manager, and what its phases cost.
struct Bench {
    json: bool,
    /// Most memory, in MiB.
    max_memory: Option<u64>,
    kubectl: Kubectl,
    installation: Installation,
    audit: AuditLog,
    exceeded: Vec<String>,
}

impl Bench {
    fn up(name: &str, executable: &Executable, nodes: u32, json: bool) -> Result<Self> {
        let binaries = Binaries::find_or_build()?;
        let installation = Installation::up(&binaries, &executable.path()?, folder(None, name), nodes)?;
        Self::on(installation, json)
    }

    /// As [`Bench::up`], on the embedded API.
    fn up_embedded(name: &str, executable: &Executable, nodes: u32, json: bool) -> Result<Self> {
        let binaries = Binaries::find_or_build()?;
        let installation =
            Installation::up_embedded(&binaries, &executable.path()?, folder(None, name), nodes)?;
        Self::on(installation, json)
    }

    fn on(installation: Installation, json: bool) -> Result<Self> {
        Ok(Self {
            json,
            max_memory: None,
            kubectl: installation.kubectl(),
            audit: installation.audit()?,
            installation,
            exceeded: Vec::new(),
        })
    }

    /// Waits until each node has a NodeImage: their creation is no part of what is measured.
    fn wait_for_node_images(&self, nodes: u32) -> Result<()> {
        interrupt::wait_until_true("each node has a NodeImage", LIMIT, || {
            let names = self.kubectl.run(&["get", "nodeimages", "--output=name"])?;
            Ok(names.lines().count() == nodes as usize)
        })
    }

    /// Fails if a bar was exceeded.
    fn end(self) -> Result<()> {
        if self.exceeded.is_empty() {
            return Ok(());
        }
        bail!("bars exceeded: {}", self.exceeded.join("; "))
    }

    /// Does something, waits until it is done, and prints what it cost.
    fn phase(
        &mut self,
        phase: &Phase<'_>,
        is_done: impl Fn(&Kubectl) -> Result<bool>,
        act: impl FnOnce(&Kubectl) -> Result<()>,
    ) -> Result<()> {
        let Phase { name, pods, bar } = *phase;
        let pid = self.installation.manager.pid();
        self.audit.read_new(MANAGER)?;
        let (cpu, start) = (process::cpu_seconds(pid)?, Instant::now());
        act(&self.kubectl)?;
        interrupt::wait_until_true(name, LIMIT, || is_done(&self.kubectl))?;
        let seconds = start.elapsed().as_secs_f64();
        // Late events and status writes belong to the phase that caused them.
        wait::observe_for(Duration::from_secs(2));
        let cpu = process::cpu_seconds(pid)? - cpu;
        let counts = Counts::of(&self.audit.read_new(MANAGER)?);
        let memory = process::peak_memory_kib(pid)? / 1024;
        let requests = counts.total(Class::Counted) as f64 / f64::from(pods);
        let cpu_ms = cpu * 1000.0 / f64::from(pods);
        if self.json {
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
            self.max_memory.map(|bar| bar as f64),
        ));
        Ok(())
    }
}

fn exceeded(phase: &str, what: &str, value: f64, bar: Option<f64>) -> Option<String> {
    bar.filter(|bar| value > *bar)
        .map(|bar| format!("{phase}: {value:.2} {what}, bar {bar}"))
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
