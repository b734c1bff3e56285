//! `cargo xtask e2e`: a cluster, the `kruise` binary, the suite of `tests/e2e` on both, and everything stopped again.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use kruise_e2e::process::{self, Signal};
use kruise_e2e::wait;

use crate::installation::{build_kruise, install};
use crate::lab::binaries::Binaries;
use crate::lab::cluster::{Cluster, Settings};
use crate::lab::components::Audit;
use crate::lab::folder;
use crate::{interrupt, workspace};

/// Longest time of the whole suite.
const LIMIT: Duration = Duration::from_hours(1);
/// How long an interrupted suite may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// What cannot be asked of the playground, a line each: the name of a test and the reason.
const NOT_EMBEDDED: &str = include_str!("../assets/not-in-the-playground.txt");

/// What to run, and on what.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Run only tests whose name contains this.
    filter: Option<String>,
    /// On the embedded API of `kruise playground` instead of a real control plane.
    #[arg(long)]
    playground: bool,
}

/// Runs the suite; fails if a test does.
pub(crate) fn run(options: &Options) -> Result<()> {
    let binaries = Binaries::find_or_build()?;
    let kruise = build_kruise()?;
    let settings = |name| Settings {
        dir: folder(None, name),
        nodes: 10,
        port: None,
        audit: Audit::On,
    };
    let (cluster, skipped) = if options.playground {
        let cluster = Cluster::up_embedded(&binaries, &kruise, &settings("playground"))?;
        (cluster, skipped(NOT_EMBEDDED))
    } else {
        (Cluster::up(&binaries, &settings("e2e"))?, Vec::new())
    };
    install(&cluster, &kruise)?;
    let mut tests = Command::new(env!("CARGO"));
    tests
        .args([
            "test",
            "--package",
            "kruise-e2e",
            "--test",
            "it",
            "--",
            "--show-output",
        ])
        .args(&options.filter)
        .args(skipped.iter().flat_map(|test| ["--skip", test]))
        .current_dir(workspace::root())
        .env("KRUISE_E2E_KUBECONFIG", cluster.kubeconfig())
        .env("KRUISE_E2E_KUBECTL", binaries.program("kubectl"))
        .env("KRUISE_E2E_AUDIT_LOG", cluster.audit_log())
        .env("KRUISE_E2E_BIN", &kruise)
        .env("KRUISE_E2E_DIR", cluster.dir());
    if !status_of_group(&mut tests)?.success() {
        bail!("the suite failed; logs are in {}", cluster.dir().display());
    }
    Ok(())
}

/// The names of a list with reasons.
fn skipped(list: &str) -> Vec<&str> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()).collect()
}

/// Runs a command and what it starts as one process group, which an interrupt ends as a whole.
fn status_of_group(command: &mut Command) -> Result<ExitStatus> {
    let mut child = command
        .process_group(0)
        .spawn()
        .context("cannot run cargo test")?;
    let ended = interrupt::wait_until("the tests end", LIMIT, || Ok(child.try_wait()?));
    if ended.is_err() {
        process::signal_group(child.id(), Signal::Term)?;
        let stopped = wait::until("the tests stop", GRACE, || Ok(child.try_wait()?));
        // cargo may be gone before what it started; without anybody left the signal fails, as it should.
        let _nobody_left = process::signal_group(child.id(), Signal::Kill);
        if stopped.is_err() {
            child.wait()?;
        }
    }
    ended
}
