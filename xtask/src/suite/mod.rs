//! `cargo xtask e2e`: a cluster, the `kruise` binary, the suite of `tests/e2e` on both, and everything stopped again.
//! What fails is repeated once, alone.

mod group;
mod selection;
mod swap;
mod verdict;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::installation::{Executable, install};
use crate::lab::binaries::{Binaries, TESTED};
use crate::lab::cluster::{Cluster, Settings};
use crate::lab::components::Audit;
use crate::lab::nodes::{self, RealNodes};
use crate::lab::{self, folder};
use crate::{image, interrupt, workspace};
use group::Ended;

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
    #[command(flatten)]
    executable: Executable,
}

/// What the suite runs on.
enum Place {
    ControlPlane,
    Playground,
    RealNodes(RealNodes),
    /// A cluster without anything of ours, on which the image runs.
    Chart(RealNodes),
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

/// Runs the suite, and what failed once more; fails if a test fails twice. `suffix` distinguishes its folder.
fn run_on(options: &Options, binaries: impl FnOnce() -> Result<Binaries>, suffix: &str) -> Result<()> {
    // What is missing is reported before anything is built.
    let place = options.place()?;
    let known = names()?;
    let binaries = binaries()?;
    let chosen = selection::arguments(&place, options.filter.as_deref(), binaries.minor()?, &known)?;
    let name = [place.name(), suffix].join(if suffix.is_empty() { "" } else { "-" });
    let lab = Lab {
        binaries,
        kruise: options.executable.path()?,
        place,
        deadline: Instant::now() + LIMIT,
    };
    let threads = lab.place.threads();
    let mut arguments = vec![threads.as_str()];
    arguments.extend(chosen.iter().map(String::as_str));
    let first = failed(&lab.run(&name, &arguments)?, &known)?;
    if first.is_empty() {
        return Ok(());
    }
    println!(
        "\nOnce more, each alone on a cluster of their own: {}",
        first.len()
    );
    let mut arguments = vec!["--test-threads=1", "--exact"];
    arguments.extend(first.iter().map(String::as_str));
    let again = format!("{name}-again");
    let ended = lab.run(&again, &arguments)?;
    let ran = verdict::running(&ended.output).unwrap_or_default();
    if ran != first.len() {
        bail!(
            "of {} tests that failed, {ran} were found again: they are not repeated",
            first.len()
        );
    }
    let again = failed(&ended, &known)?;
    verdict::close(&first, &again, &folder(None, &name).display().to_string())
}

impl Options {
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

impl Place {
    /// How many tests run at a time. Simulated pods need no processor, so most tests only wait.
    fn threads(&self) -> String {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let tests = match self {
            Self::ControlPlane | Self::Playground => 2 * processors,
            Self::RealNodes(_) => processors,
            // Each has the cluster to itself.
            Self::Chart(_) => 1,
        };
        format!("--test-threads={tests}")
    }

    /// Of the cluster's folder.
    fn name(&self) -> &'static str {
        match self {
            Self::ControlPlane => "e2e",
            Self::Playground => "playground",
            Self::RealNodes(_) => "e2e-nodes",
            Self::Chart(_) => "e2e-chart",
        }
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

/// What clusters are made of.
struct Lab {
    binaries: Binaries,
    kruise: PathBuf,
    place: Place,
    deadline: Instant,
}

impl Lab {
    /// The suite with these arguments, on a new cluster.
    fn run(&self, name: &str, arguments: &[&str]) -> Result<Ended> {
        let cluster = self.cluster(name)?;
        if !matches!(self.place, Place::Chart(_)) {
            install(&cluster, &self.kruise)?;
        }
        let mut tests = suite(&["--include-ignored", "--show-output"]);
        tests
            .args(arguments)
            .env("KRUISE_E2E_KUBECONFIG", cluster.kubeconfig())
            .env("KRUISE_E2E_KUBECTL", self.binaries.program("kubectl"))
            .env("KRUISE_E2E_AUDIT_LOG", cluster.audit_log())
            .env("KRUISE_E2E_BIN", &self.kruise)
            .env("KRUISE_E2E_DIR", cluster.dir());
        if matches!(self.place, Place::RealNodes(_) | Place::Chart(_)) {
            tests.env("KRUISE_E2E_REAL_NODES", nodes::folder(cluster.dir()));
        }
        group::run(&mut tests, self.deadline)
            .with_context(|| format!("the suite does not end; logs are in {}", cluster.dir().display()))
    }

    fn cluster(&self, name: &str) -> Result<Cluster> {
        let mut settings = Settings {
            dir: folder(None, name),
            nodes: 10,
            port: None,
            audit: Audit::On,
            real: None,
            loaded: false,
        };
        match &self.place {
            Place::Playground => return Cluster::up_embedded(&self.binaries, &self.kruise, &settings),
            Place::ControlPlane => (),
            Place::RealNodes(real) | Place::Chart(real) => {
                settings.nodes = 0;
                settings.real = Some(real.clone());
            }
        }
        Cluster::up(&self.binaries, &settings)
    }
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

/// The suite with these arguments.
fn suite(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--package", "kruise-e2e", "--test", "it", "--"])
        .args(arguments)
        .current_dir(workspace::root());
    command
}

/// The names of all tests of the suite.
fn names() -> Result<Vec<String>> {
    let listed = suite(&["--list"]).stderr(Stdio::inherit()).output()?;
    if !listed.status.success() {
        bail!("the suite cannot be listed");
    }
    let text = String::from_utf8(listed.stdout)?;
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}
