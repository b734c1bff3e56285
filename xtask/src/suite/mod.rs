//! `cargo xtask e2e`: clusters, the `kruise` binary, the suite of `tests/e2e` on both, and everything stopped again.
//! What fails is repeated once, alone.

mod clusters;
mod group;
mod left_out;
mod place;
mod program;
mod selection;
mod swap;
mod verdict;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use crate::installation::Executable;
use crate::lab;
use crate::lab::binaries::{Binaries, TESTED};
use crate::{image, interrupt};
use clusters::Lab;
use group::Ended;
use place::Place;
use program::{Program, Selection};

/// Longest time of the whole suite, repetitions included.
const LIMIT: Duration = Duration::from_hours(1);

/// How many nodes the tests of real nodes get.
const REAL_NODES: u32 = 3;

/// Where Helm is; without it the one in `PATH`.
const HELM: &str = "HELM";

/// What to run, and on what.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Run only tests whose name contains this.
    filter: Option<String>,
    /// On the embedded API of `kruise playground` instead of a real control plane.
    #[arg(long)]
    playground: bool,
    /// The tests of `nodes`, on nodes that run containers. They need root and some packages.
    #[arg(long, conflicts_with = "playground")]
    real_nodes: bool,
    /// The tests of `from_nothing`: Helm installs our image on a cluster with a node that runs containers. They need Helm, in
    /// PATH or named by HELM, and what real nodes need.
    #[arg(long, conflicts_with_all = ["playground", "real_nodes"])]
    chart: bool,
    /// Clusters with more than 300 objects of OpenKruise on a real API server, each a cluster of its own: preflight, the swap, and the way
    /// back.
    #[arg(long, conflicts_with_all = ["playground", "real_nodes", "chart", "install", "versions", "kruise", "dev"])]
    swap: bool,
    /// A layout with the image for `--chart`; without it the image is built.
    #[arg(long, requires = "chart", value_name = "DIR")]
    image: Option<PathBuf>,
    /// Install the packages that real nodes need, where they are missing.
    #[arg(long, conflicts_with = "playground")]
    install: bool,
    /// On every version of Kubernetes that is tested, one after the other. The programs of each are built once.
    #[arg(long, conflicts_with = "playground")]
    versions: bool,
    /// Build the suite with the whole workspace, as `cargo test --workspace` does: after that nothing is built again.
    #[arg(long, conflicts_with = "swap")]
    workspace: bool,
    /// Begin no test after so many seconds. Those that are left out are named, and fail nothing.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["real_nodes", "chart", "swap"])]
    begin_within: Option<u64>,
    #[command(flatten)]
    executable: Executable,
}

/// Runs the suite; with `--versions` on each version, also after one has failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.swap {
        return swap::run(options.filter.as_deref());
    }
    if !options.versions {
        return run_on(options, Binaries::find_or_build, "");
    }
    let mut failed = Vec::new();
    for (_, version) in TESTED {
        println!("\n== Kubernetes {version}");
        if let Err(error) = run_on(options, || Binaries::of_version(version), version) {
            interrupt::check()?;
            println!("Kubernetes {version}: {error:#}");
            failed.push(version);
        }
    }
    if !failed.is_empty() {
        bail!("the suite failed on Kubernetes {}", failed.join(", "));
    }
    Ok(())
}

/// Runs the suite, and what failed once more; fails if a test fails twice. `suffix` distinguishes its folders.
fn run_on(options: &Options, binaries: impl FnOnce() -> Result<Binaries>, suffix: &str) -> Result<()> {
    // What is missing is reported before anything is built.
    let place = options.place()?;
    let program = Program::build("tests/e2e", "kruise-e2e", options.selection())?;
    let known = program.names(&[])?;
    let binaries = binaries()?;
    let chosen = selection::tests(&place, options.filter.as_deref(), binaries.minor()?, &known)?;
    let lab = Lab {
        binaries,
        kruise: options.executable.path()?,
        program,
        place,
        suffix: suffix.into(),
        deadline: Instant::now() + LIMIT,
    };
    let first = lab.run(&chosen, options.begin_within)?;
    let mut failures = BTreeSet::new();
    for part in &first {
        failures.extend(failed(&part.ended, &known)?);
    }
    let left_out: BTreeSet<String> = first.iter().flat_map(|part| part.left_out.clone()).collect();
    failures.retain(|test| !left_out.contains(test));
    left_out::report(&left_out, chosen.len())?;
    if failures.is_empty() {
        return Ok(());
    }
    println!(
        "\nOnce more, each alone on a cluster of their own: {}",
        failures.len()
    );
    let part = lab.repeat(&failures)?;
    let ran = verdict::running(&part.ended.output).unwrap_or_default();
    if ran != failures.len() {
        bail!(
            "of {} tests that failed, {ran} were found again: they are not repeated",
            failures.len()
        );
    }
    let again = failed(&part.ended, &known)?;
    let logs: Vec<String> = first
        .iter()
        .map(|part| part.folder.display().to_string())
        .collect();
    verdict::close(&failures, &again, &logs.join(" and "))
}

impl Options {
    fn selection(&self) -> Selection {
        if self.workspace {
            Selection::Workspace
        } else {
            Selection::Package
        }
    }

    fn place(&self) -> Result<Place> {
        if self.chart {
            check_helm()?;
            let mut real = lab::real(1, self.install)?;
            real.image = Some(match &self.image {
                Some(layout) => layout.clone(),
                None => image::build()?,
            });
            return Ok(Place::Chart(real));
        }
        if self.real_nodes {
            return lab::real(REAL_NODES, self.install).map(Place::RealNodes);
        }
        Ok(if self.playground {
            Place::Playground
        } else {
            Place::ControlPlane
        })
    }
}

/// The tests that failed; an error if the run failed and no test did.
fn failed(ended: &Ended, known: &[String]) -> Result<BTreeSet<String>> {
    if ended.status.success() {
        return Ok(BTreeSet::new());
    }
    if !verdict::is_complete(&ended.output) {
        bail!(
            "the suite broke off with {} before all tests had run",
            ended.status
        );
    }
    let failed = verdict::failed(&ended.output, known);
    if failed.is_empty() {
        bail!("the suite ended with {}, and no test has failed", ended.status);
    }
    Ok(failed)
}

/// Fails without Helm.
fn check_helm() -> Result<()> {
    let helm = std::env::var(HELM).unwrap_or_else(|_| "helm".into());
    let version = Command::new(&helm).arg("version").output();
    if !version.is_ok_and(|version| version.status.success()) {
        bail!(
            "the tests of the chart need Helm 3, and {helm} does not run: install it, or name it in {HELM}"
        );
    }
    Ok(())
}
