//! `cargo xtask bench-start`: from the start of a manager to its first write, compared with a plain list of the pods.
//!
//! Managers are started at the address of the one before, as behind a Service, where everything is registered
//! already, and at a new address, which is written to all definitions and webhook configurations.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use jiff::Timestamp;
use kruise_e2e::audit::{AuditLog, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::manager::{Launch, Manager};
use kruise_e2e::wait;

use super::LIMIT;
use super::fleet::Fleet;
use crate::installation::Installation;

/// What is measured.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    fleet: Fleet,
    /// How often a manager is started; the fastest start counts.
    #[arg(long, default_value_t = 3)]
    starts: u32,
}

/// The bar: a second, and so many times the plain list.
const SECOND: Duration = Duration::from_secs(1);
const LISTS: f64 = 1.3;

/// Resources whose requests show where the time goes.
const MILESTONES: &[(&str, &str)] = &[
    ("definitions", "customresourcedefinitions"),
    ("CloneSets", "clonesets"),
    ("pods", "pods"),
    ("lease", "leases"),
];

/// Fails if the bar is exceeded.
pub(crate) fn run(options: &Options) -> Result<()> {
    let fleet = &options.fleet;
    let kruise = fleet.executable.path()?;
    let Installation { manager, cluster } = fleet.up("bench-start", &kruise)?;
    let kubectl = cluster.kubectl();
    let port = manager.webhook_port();
    let mut running = Some(manager);
    let mut best = |port: Option<u16>, what: &str| -> Result<Duration> {
        let launch = Launch {
            webhook_port: port,
            ..Installation::launch(&cluster, &kruise)
        };
        let mut best = Duration::MAX;
        for _ in 0..options.starts.max(1) {
            let took = first_write(&kubectl, &cluster.audit_log(), &mut running, &launch)?;
            println!("start to first write, {what}: {:.2} s", took.as_secs_f64());
            best = best.min(took);
            fleet.wait_until_ready(&kubectl)?;
        }
        Ok(best)
    };
    let behind_a_service = best(Some(port), "at the same address")?;
    let at_a_new_address = best(None, "at a new address")?;
    let list = time_of(&kubectl, "/api/v1/pods")?;
    let bar = SECOND + list.mul_f64(LISTS);
    println!(
        "{} pods: plain list {:.2} s, bar {:.2} s; best start at the same address {:.2} s, at a new one {:.2} s",
        fleet.replicas,
        list.as_secs_f64(),
        bar.as_secs_f64(),
        behind_a_service.as_secs_f64(),
        at_a_new_address.as_secs_f64(),
    );
    ensure!(
        behind_a_service.max(at_a_new_address) <= bar,
        "the start takes too long"
    );
    Ok(())
}

/// Kills the manager, deletes a pod, starts another manager, and returns how long it takes until the API server
/// receives its request for another pod. It has then taken the lease, listed everything, and reconciled the set.
fn first_write(
    kubectl: &Kubectl,
    audit: &Path,
    running: &mut Option<Manager>,
    launch: &Launch,
) -> Result<Duration> {
    running.take().map_or(Ok(()), Manager::kill)?;
    // Otherwise the new one waits until the lease of the dead one has expired.
    let system = kubectl.in_namespace("kruise-system");
    system.run(&["delete", "lease", "kruise-manager", "--ignore-not-found"])?;
    let pods = kubectl.run(&["get", "pods", "--output=name"])?;
    let pod = pods.lines().next().context("there are no pods")?;
    kubectl.run(&["delete", pod, "--wait"])?;
    let mut log = AuditLog::from_now(audit)?;
    let begin = Timestamp::now();
    *running = Some(launch.start_detached()?);
    let mut requests = Vec::new();
    let created = wait::until("a pod is created", LIMIT, || {
        requests.extend(log.read_new(MANAGER)?);
        let created = requests
            .iter()
            .find(|one| one.verb == "create" && one.resource == "pods");
        Ok(created.map(|request| request.received.clone()))
    })?;
    let since = |received: &str| -> Result<Duration> {
        // Both clocks are this machine's.
        Ok(received
            .parse::<Timestamp>()?
            .duration_since(begin)
            .unsigned_abs())
    };
    for (what, resource) in MILESTONES {
        let mut of_resource = requests.iter().filter(|one| one.resource == *resource);
        let first = of_resource.next().map(|one| since(&one.received)).transpose()?;
        let last = of_resource
            .next_back()
            .map(|one| since(&one.received))
            .transpose()?;
        let text = |at: Option<Duration>| at.map_or("-".to_owned(), |at| format!("{:.2}", at.as_secs_f64()));
        println!(
            "  {what}: first request at {} s, last at {} s",
            text(first),
            text(last)
        );
    }
    since(&created)
}

/// The best time of three requests for a path, without the time that kubectl takes to start.
pub(super) fn time_of(kubectl: &Kubectl, path: &str) -> Result<Duration> {
    let time = |path: &str| -> Result<Duration> {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let begin = Instant::now();
            kubectl.run(&["get", "--raw", path])?;
            best = best.min(begin.elapsed());
        }
        Ok(best)
    };
    Ok(time(path)?.saturating_sub(time("/readyz")?))
}
