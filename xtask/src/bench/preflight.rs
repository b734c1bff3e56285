//! `cargo xtask bench-preflight`: `kruise preflight` of many pods, compared with plain lists of what it reads.
//!
//! What it reads is in the API server's audit log: each resource that it listed or watched is listed once more,
//! whole, by a client that does nothing with it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use kruise_e2e::audit::{AuditLog, Entry};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::process;

use super::fleet::Fleet;
use super::start::time_of;

/// What is measured.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    fleet: Fleet,
    /// How often the command runs; the fastest run counts, and the most memory.
    #[arg(long, default_value_t = 3)]
    runs: u32,
}

/// The bars: so many times the plain lists, and MiB.
const LISTS: f64 = 1.5;
const MEMORY: u64 = 150;

/// Fails if a bar is exceeded.
pub(crate) fn run(options: &Options) -> Result<()> {
    let fleet = &options.fleet;
    let kruise = fleet.executable.path()?;
    let installation = fleet.up("bench-preflight", &kruise)?;
    let kubectl = installation.kubectl();
    let mut log = installation.audit()?;
    let (mut best, mut most, mut lists) = (Duration::MAX, 0, BTreeSet::new());
    for _ in 0..options.runs.max(1) {
        let (took, memory) = preflight(&kruise, &kubectl)?;
        println!("preflight: {:.2} s, {memory} MiB at most", took.as_secs_f64());
        (best, most) = (best.min(took), most.max(memory));
        lists.extend(read(&mut log)?);
    }
    ensure!(
        lists.contains("/api/v1/pods"),
        "the pods were not read: {lists:?}"
    );
    let mut plain = Duration::ZERO;
    for path in &lists {
        plain += time_of(&kubectl, path)?;
    }
    let bar = plain.mul_f64(LISTS);
    println!(
        "{} pods: plain lists of {} resources {:.2} s, bar {:.2} s; best preflight {:.2} s, {most} MiB at most, bar {MEMORY} MiB",
        fleet.replicas,
        lists.len(),
        plain.as_secs_f64(),
        bar.as_secs_f64(),
        best.as_secs_f64(),
    );
    ensure!(best <= bar && most <= MEMORY, "preflight takes too much");
    Ok(())
}

/// Runs the command; its time, and its peak memory in MiB.
fn preflight(kruise: &Path, kubectl: &Kubectl) -> Result<(Duration, u64)> {
    let begin = Instant::now();
    let mut command = Command::new(kruise)
        .args(["preflight", "--output=json", "--kubeconfig"])
        .arg(kubectl.kubeconfig())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run preflight")?;
    let mut memory = 0;
    let status = loop {
        if let Some(status) = command.try_wait()? {
            break status;
        }
        // The last look is a moment before its end.
        memory = memory.max(process::peak_memory_kib(command.id()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = begin.elapsed();
    ensure!(
        matches!(status.code(), Some(0..=2)),
        "preflight ended with {status}"
    );
    Ok((took, memory / 1024))
}

/// The paths of the resources that were listed or watched by our programs since the last call.
fn read(log: &mut AuditLog) -> Result<BTreeSet<String>> {
    let mut requests = log.read_new("kruise-")?;
    requests.retain(|one| matches!(one.verb.as_str(), "list" | "watch") && one.code == 200);
    let path = |one: &Entry| one.uri.split('?').next().unwrap_or_default().to_owned();
    Ok(requests.iter().map(path).collect())
}
