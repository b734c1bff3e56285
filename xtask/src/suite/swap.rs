//! `cargo xtask e2e --swap`: the tests of `kruise/tests/it/swap/real.rs`, each on a control plane of its own.
//!
//! They load a cluster into etcd, so nothing else may run on it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::group::{self, Output};
use super::program::{Program, Selection};
use crate::interrupt;
use crate::lab::binaries::Binaries;
use crate::lab::cluster::{CONTROLLERS, Cluster, Settings};
use crate::lab::components::Audit;
use crate::lab::folder;

/// Longest time of all of them.
const LIMIT: Duration = Duration::from_hours(1);

/// What begins the names of the tests.
const PREFIX: &str = "swap::real::";

/// Runs the tests whose name contains `filter`; fails after all have run if one failed.
pub(super) fn run(filter: Option<&str>) -> Result<()> {
    let binaries = Binaries::find_or_build()?;
    // Of the whole workspace: the embedded API and the manager are in these tests, so little would be saved.
    let tests = Program::build("kruise", "kruise", Selection::Workspace)?;
    let names = tests.names(&["--ignored", PREFIX])?;
    let chosen = names
        .iter()
        .filter(|name| filter.is_none_or(|text| name.contains(text)));
    let chosen: Vec<&String> = chosen.collect();
    ensure!(!chosen.is_empty(), "no test has such a name: {names:?}");
    let deadline = Instant::now() + LIMIT;
    let mut failed = Vec::new();
    for name in chosen {
        let settings = Settings {
            dir: folder(None, "swap"),
            nodes: 0,
            port: None,
            audit: Audit::Off,
            real: None,
            loaded: true,
        };
        let cluster = Cluster::up(&binaries, &settings)?;
        let etcd = cluster.etcd().context("a control plane has an etcd")?;
        let mut test = tests.command(&["--ignored", "--exact", name]);
        test.env("KUBECONFIG", cluster.kubeconfig())
            .env("KUBECTL", binaries.program("kubectl"))
            .env("KRUISE_SWAP_ETCD", etcd.to_string())
            .env("KRUISE_SWAP_CONTROLLERS", cluster.dir().join(CONTROLLERS));
        let ended = group::run(&mut test, deadline, Output::Shown)?;
        interrupt::check()?;
        let has_passed = format!("test {name} ... ok");
        if !ended.status.success() || !ended.output.lines().any(|line| line == has_passed) {
            failed.push(name.as_str());
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}
