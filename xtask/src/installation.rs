//! `kruise` on a cluster of the lab: what `kruise manifests` prints is applied, the manager runs beside the cluster.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use kruise_e2e::audit::AuditLog;
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::manager::{Launch, Manager};

use crate::lab::binaries::Binaries;
use crate::lab::cluster::{Cluster, Settings};
use crate::lab::components::Audit;
use crate::{interrupt, workspace};

/// A cluster with a manager that is ready. Both are stopped when it is dropped, the manager first.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) manager: Manager,
    pub(crate) cluster: Cluster,
}

impl Installation {
    /// Starts a cluster in `dir` with its requests logged, and the manager of this workspace on it.
    pub(crate) fn up(binaries: &Binaries, kruise: &Path, dir: PathBuf, nodes: u32) -> Result<Self> {
        Self::up_with(binaries, kruise, dir, nodes, &[])
    }

    /// As [`Installation::up`], with more flags for the manager.
    pub(crate) fn up_with(
        binaries: &Binaries,
        kruise: &Path,
        dir: PathBuf,
        nodes: u32,
        flags: &[&str],
    ) -> Result<Self> {
        let cluster = Cluster::up(binaries, &settings(dir, nodes))?;
        Self::on(cluster, kruise, flags)
    }

    /// As [`Installation::up`], on the embedded API of `kruise playground`.
    pub(crate) fn up_embedded(binaries: &Binaries, kruise: &Path, dir: PathBuf, nodes: u32) -> Result<Self> {
        let cluster = Cluster::up_embedded(binaries, kruise, &settings(dir, nodes))?;
        Self::on(cluster, kruise, &[])
    }

    fn on(cluster: Cluster, kruise: &Path, flags: &[&str]) -> Result<Self> {
        install(&cluster, kruise)?;
        let launch = Launch {
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            ..Self::launch(&cluster, kruise)
        };
        let mut manager = launch.start_detached()?;
        manager.wait_ready(Duration::from_mins(5))?;
        interrupt::check()?;
        Ok(Self { manager, cluster })
    }

    /// How its manager is started.
    pub(crate) fn launch(cluster: &Cluster, kruise: &Path) -> Launch {
        Launch {
            command: vec![kruise.display().to_string(), "manager".into()],
            kubeconfig: cluster.kubeconfig(),
            dir: cluster.dir().to_path_buf(),
            flags: Vec::new(),
            webhook_port: None,
        }
    }

    /// kubectl for the cluster.
    pub(crate) fn kubectl(&self) -> Kubectl {
        self.cluster.kubectl()
    }

    /// The audit log from now on.
    pub(crate) fn audit(&self) -> Result<AuditLog> {
        AuditLog::from_now(self.cluster.audit_log())
    }

    /// Stop neither when dropped.
    pub(crate) fn leave_running(self) {
        self.manager.leave_running();
        self.cluster.leave_running();
    }
}

fn settings(dir: PathBuf, nodes: u32) -> Settings {
    Settings {
        dir,
        nodes,
        port: None,
        audit: Audit::On,
        real: None,
        loaded: false,
    }
}

/// Which executable is installed; without a flag it is built as it is shipped.
#[derive(Args, Debug, Default)]
pub(crate) struct Executable {
    /// The development build of kruise, which is built sooner and runs slower.
    #[arg(long)]
    dev: bool,
    /// This executable of kruise, with that of the agent beside it; nothing is built.
    #[arg(long, conflicts_with = "dev", value_name = "PATH")]
    kruise: Option<PathBuf>,
}

impl Executable {
    /// Builds the executable, unless one was given, and returns its path.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        if let Some(given) = &self.kruise {
            return given
                .canonicalize()
                .with_context(|| format!("no executable {}", given.display()));
        }
        let (arguments, folder): (&[_], _) = if self.dev {
            (&["--profile", "dev"], "debug")
        } else {
            (
                &["--profile", "release", "--features", "kruise/jemalloc"],
                "release",
            )
        };
        let status = Command::new(env!("CARGO"))
            .args(["build", "--package", "kruise", "--package", "kruise-agent"])
            .args(arguments)
            .current_dir(workspace::root())
            .status()?;
        if !status.success() {
            bail!("kruise does not build");
        }
        Ok(workspace::target().join(folder).join("kruise"))
    }
}

/// Applies what `kruise manifests` prints; the manager itself runs outside the cluster.
pub(crate) fn install(cluster: &Cluster, kruise: &Path) -> Result<()> {
    let output = Command::new(kruise)
        .args(["manifests", "--without-manager"])
        .output()?;
    if !output.status.success() {
        bail!(
            "kruise manifests: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let manifests = String::from_utf8(output.stdout)?;
    cluster
        .kubectl()
        .run_with_input(&["apply", "-f", "-"], &manifests)?;
    let established = [
        "wait",
        "--for=condition=Established",
        "crd",
        "--all",
        "--timeout=300s",
    ];
    cluster.kubectl().run(&established).map(drop)
}
