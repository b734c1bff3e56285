//! `cargo xtask e2e`: clusters, the `kruise` binary, the suite of `tests/e2e` on both, and everything stopped again.
//! Each test is a process. What fails is repeated once, alone.

mod clusters;
pub(crate) mod group;
mod ledger;
mod place;
mod program;
mod runner;
mod schedule;
mod selection;
mod swap;
mod turns;
mod verdict;

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
use place::Place;
use program::{Program, Selection};
use runner::Outcomes;
use selection::Share;
use turns::Turns;

/// How many of the slowest tests are named at the end.
const SLOWEST: usize = 10;

/// No test begins later, unless another limit is given.
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
    /// The tests of `from_nothing`: Helm installs our image on a cluster with a node that runs containers. They
    /// need Helm, in PATH or named by HELM, and what real nodes need.
    #[arg(long, conflicts_with_all = ["playground", "real_nodes"])]
    chart: bool,
    /// Clusters with more than 300 objects of OpenKruise on a real API server, each a cluster of its own:
    /// preflight, the swap, and the way back.
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
    /// Begin no test after so many seconds. A suite of which a test did not begin has failed.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["real_nodes", "chart", "swap"])]
    begin_within: Option<u64>,
    /// Run a part of the tests, such as the second of five parts: 2/5.
    #[arg(long, conflicts_with_all = ["real_nodes", "chart", "swap"])]
    share: Option<Share>,
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
    let known = program.names(&["--ignored"])?;
    let binaries = binaries()?;
    let chosen = selection::tests(&place, options.filter.as_deref(), binaries.minor()?, &known)?;
    let chosen = match options.share {
        Some(share) => share.take(chosen)?,
        None => chosen,
    };
    let lab = Lab {
        binaries,
        kruise: options.executable.path()?,
        turns: Turns::of(&known)?,
        program,
        place,
        suffix: suffix.into(),
        begin_until: Instant::now() + options.begin_within.map_or(LIMIT, Duration::from_secs),
    };
    let first = lab.run(&chosen)?;
    runner::print_slowest(&first, SLOWEST);
    let failed = verdict::to_repeat(&first)?;
    let repeats = if failed.is_empty() {
        Outcomes::default()
    } else {
        println!("\nOnce more, each alone on a new cluster: {}", failed.len());
        lab.repeat(&failed)?
    };
    let flaky = verdict::judge(&first, &repeats, &lab.logs())?;
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    ledger::note(&ledger::path(), &flaky, &day)
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

/// Fails without Helm.
fn check_helm() -> Result<()> {
    let helm = std::env::var(HELM).unwrap_or_else(|_| "helm".into());
    let version = Command::new(&helm).arg("version").output();
    if !version.is_ok_and(|version| version.status.success()) {
        bail!(
            "the tests of the chart need Helm, and {helm} does not run: install it, or name it in {HELM}, as \
             {HELM}=$(cargo xtask lab helm 3)"
        );
    }
    Ok(())
}
