//! A real Kubernetes on this machine, for the suite, the demo and the bench.
//!
//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler run as ordinary processes on loopback; kwok plays
//! the nodes, and real ones may be joined. Everything a cluster owns lives in one folder: certificates, data, logs,
//! one pid file per process. Several clusters run side by side in different folders on different ports.
//!
//! | module | what |
//! |---|---|
//! | [`binaries`] | finds the programs or builds them from Go modules |
//! | [`kwok`] | the one line of kwok that is changed |
//! | [`helm`] | Helm, for the tests of the chart |
//! | [`address`] | where the API server listens |
//! | [`pki`] | certificates and kubeconfig |
//! | [`ports`] | the loopback ports of one cluster |
//! | [`daemon`] | a process with a pid file |
//! | [`nodes`] | real nodes: kubelets with containerd |
//! | [`cluster`] | up and down |

mod address;
pub(crate) mod binaries;
pub(crate) mod cluster;
pub(crate) mod components;
mod daemon;
mod helm;
mod kwok;
pub(crate) mod nodes;
mod pki;
mod ports;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use binaries::Binaries;
use cluster::{Cluster, Settings};
use components::Audit;
use nodes::RealNodes;
use nodes::machine::Machine;

/// Commands of `cargo xtask lab`.
#[derive(Subcommand, Debug)]
pub(crate) enum LabCommand {
    /// Find the control plane's programs, or build them.
    Build,
    /// Find a Helm that is tested, or build it, and print where it is.
    Helm {
        /// Its major version: 3 or 4.
        major: u32,
    },
    /// Start a cluster and print how to reach it.
    Up {
        /// Simulated nodes.
        #[arg(long, default_value_t = 10)]
        nodes: u32,
        /// Real nodes beside them: a kubelet with containerd each. They need root and some packages.
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=i64::from(nodes::MOST)))]
        real_nodes: u32,
        /// Install the packages that real nodes need, where they are missing.
        #[arg(long, requires = "real_nodes")]
        install: bool,
        /// Folder of the cluster.
        #[arg(long)]
        dir: Option<PathBuf>,
        /// Port of the API server; the others follow it. Without it the first free range is taken.
        #[arg(long)]
        port: Option<u16>,
        /// Log every request to `audit.log`.
        #[arg(long)]
        audit: bool,
    },
    /// Can this machine carry real nodes? Says what is missing, and fails then.
    Machine {
        /// Install the packages that are missing.
        #[arg(long)]
        install: bool,
    },
    /// Stop a cluster and drop its data; logs stay.
    Down {
        /// Folder of the cluster.
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

/// Runs one command.
pub(crate) fn run(command: LabCommand) -> Result<()> {
    match command {
        LabCommand::Build => {
            let binaries = Binaries::find_or_build()?;
            println!("{}", binaries.folder().display());
        }
        LabCommand::Helm { major } => println!("{}", helm::find_or_build(major)?.display()),
        LabCommand::Up {
            nodes,
            real_nodes,
            install,
            dir,
            port,
            audit,
        } => {
            let audit = if audit { Audit::On } else { Audit::Off };
            let dir = folder(dir, "default");
            let real = if real_nodes > 0 {
                Some(real(real_nodes, install)?)
            } else {
                None
            };
            let binaries = Binaries::find_or_build()?;
            let cluster = Cluster::up(
                &binaries,
                &Settings {
                    dir,
                    nodes,
                    port,
                    audit,
                    real,
                    loaded: false,
                },
            )?;
            println!("export KUBECONFIG={}", cluster.kubeconfig().display());
            cluster.leave_running();
        }
        LabCommand::Machine { install } => {
            real(0, install)?;
            println!("this machine can carry real nodes");
        }
        LabCommand::Down { dir } => cluster::down(&folder(dir, "default"))?,
    }
    Ok(())
}

/// So many real nodes, on a machine that has shown that it can carry them.
pub(crate) fn real(count: u32, install: bool) -> Result<RealNodes> {
    let machine = Machine::check(&folder(None, "trial"), install)?;
    Ok(RealNodes {
        count,
        machine,
        image: None,
    })
}

/// The given folder, or the one of that name in the workspace.
pub(crate) fn folder(asked: Option<PathBuf>, name: &str) -> PathBuf {
    asked.unwrap_or_else(|| crate::workspace::root().join(".lab").join(name))
}
