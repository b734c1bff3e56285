//! `cargo xtask bench-start`: from the start of a manager to its first write, compared with a plain list of the pods.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use kruise_e2e::audit::{AuditLog, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::manager::Manager;
use kruise_e2e::wait;
use kruise_tour::stage::is_done;
use serde_json::json;

use super::LIMIT;
use super::cloneset::bench_set;
use crate::installation::{Executable, Installation};
use crate::interrupt;
use crate::lab::binaries::Binaries;
use crate::lab::folder;

/// The CloneSet in the version that is stored: while no manager runs, nobody converts.
const RESOURCE: &str = "clonesets.v1beta1.apps.kruise.io";

/// What is measured.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Pods of one CloneSet.
    #[arg(long, default_value_t = 5000)]
    replicas: u32,
    /// Simulated nodes.
    #[arg(long, default_value_t = 50)]
    nodes: u32,
    /// How often a manager is started; the fastest start counts.
    #[arg(long, default_value_t = 3)]
    starts: u32,
    #[command(flatten)]
    executable: Executable,
}

/// The bar: a second, and so many times the plain list.
const SECOND: Duration = Duration::from_secs(1);
const LISTS: f64 = 1.3;

/// Fails if the bar is exceeded.
pub(crate) fn run(options: &Options) -> Result<()> {
    let binaries = Binaries::find_or_build()?;
    let kruise = options.executable.path()?;
    let dir = folder(None, "bench-start");
    let Installation { manager, cluster } = Installation::up(&binaries, &kruise, dir, options.nodes)?;
    let kubectl = cluster.kubectl();
    kubectl.apply(&bench_set(options.replicas))?;
    let ready = json!({"readyReplicas": options.replicas});
    interrupt::wait_until_true("all pods are ready", LIMIT, || {
        is_done(&kubectl.get(RESOURCE, "bench")?, &ready)
    })?;
    let mut running = Some(manager);
    let mut best = Duration::MAX;
    for _ in 0..options.starts.max(1) {
        running.take().map_or(Ok(()), Manager::kill)?;
        let (took, manager) = first_write(&kubectl, cluster.audit_log(), || {
            Installation::launch(&cluster, &kruise).start_detached()
        })?;
        println!("start to first write: {:.2} s", took.as_secs_f64());
        best = best.min(took);
        running = Some(manager);
        interrupt::wait_until_true("all pods are ready", LIMIT, || {
            is_done(&kubectl.get(RESOURCE, "bench")?, &ready)
        })?;
    }
    let list = plain_list(&kubectl)?;
    let bar = SECOND + list.mul_f64(LISTS);
    println!(
        "{} pods: plain list {:.2} s, best start {:.2} s, bar {:.2} s",
        options.replicas,
        list.as_secs_f64(),
        best.as_secs_f64(),
        bar.as_secs_f64()
    );
    ensure!(best <= bar, "the start takes too long");
    Ok(())
}

/// Deletes a pod while no manager runs, starts one, and returns how long it takes until it has created another pod. It has
/// then taken the lease, listed everything, and reconciled the set.
fn first_write(
    kubectl: &Kubectl,
    audit: impl AsRef<Path>,
    start: impl FnOnce() -> Result<Manager>,
) -> Result<(Duration, Manager)> {
    // Otherwise the new one waits until the lease of the dead one has expired.
    let system = kubectl.in_namespace("kruise-system");
    system.run(&["delete", "lease", "kruise-manager", "--ignore-not-found"])?;
    let pods = kubectl.run(&["get", "pods", "--output=name"])?;
    let pod = pods.lines().next().context("there are no pods")?;
    kubectl.run(&["delete", pod, "--wait"])?;
    let mut log = AuditLog::from_now(audit.as_ref())?;
    let begin = Instant::now();
    let manager = start()?;
    wait::until_true("a pod is created", LIMIT, || {
        let mut requests = log.read_new(MANAGER)?.into_iter();
        Ok(requests.any(|request| request.verb == "create" && request.resource == "pods"))
    })?;
    Ok((begin.elapsed(), manager))
}

/// The best time of three lists of all pods, without the time that kubectl takes to start.
fn plain_list(kubectl: &Kubectl) -> Result<Duration> {
    let time = |path: &str| -> Result<Duration> {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let begin = Instant::now();
            kubectl.run(&["get", "--raw", path])?;
            best = best.min(begin.elapsed());
        }
        Ok(best)
    };
    Ok(time("/api/v1/pods")?.saturating_sub(time("/readyz")?))
}
