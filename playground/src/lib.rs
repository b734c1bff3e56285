//! `kruise playground`: a cluster to try things on, in one process.
//!
//! The API is `kruise-sim`'s, in real time and over HTTP on this machine only; nodes and kubelets are simulated. The
//! manager is the production manager, webhooks included: it talks to the API like any client, and the API calls its
//! webhooks over TLS. On each node is the agent that is shipped, which calls the simulated container runtime of the
//! node. Nothing needs root, a network or another program, and what was started or written is gone when the process
//! ends.
//!
//! | module | what |
//! |---|---|
//! | [`times`] | how long simulated things take |
//! | [`folder`], [`kubeconfig`] | files of this playground, only |
//! | [`cluster`] | the world, from nothing or from a snapshot, with what `kruise manifests` prints |
//! | [`audit`] | the file of `--audit-log` |
//! | [`snapshot`] | the file of `--save` and `--load` |
//! | [`manager`] | the manager in it |
//! | [`agents`] | the agents of its nodes |
//! | [`run`] | the order in which all this starts and stops |
//! | [`bare`] | the API and nodes without all that |
//! | [`demo`], [`stage`] | the guided tour in it |
//! | [`text`] | texts for the reader |

#![allow(clippy::disallowed_methods, reason = "a playground lives in real time")]

mod agents;
mod audit;
mod bare;
mod cluster;
mod demo;
mod folder;
mod kubeconfig;
mod manager;
mod probe;
mod run;
mod snapshot;
mod stage;
mod text;
mod times;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use kruise_frame::{gates::Gates, output};

use self::cluster::ZONES;

/// A cluster to try things on: an embedded Kubernetes API, simulated nodes and the manager, in one process.
#[derive(Args, Debug)]
pub struct Options {
    /// Simulated nodes, in three zones.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=5000), conflicts_with = "load")]
    nodes: u16,
    /// Node agents that run, each on one of the nodes; 0 runs none.
    #[arg(long, value_name = "N", default_value_t = 16, conflicts_with = "bare")]
    agents: u16,
    /// Port of the API on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Write the kubeconfig here, and remove it in the end; a file that no playground wrote is left alone.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Begin with what a playground saved.
    #[arg(long, value_name = "FILE", conflicts_with = "demo")]
    load: Option<PathBuf>,
    /// Save everything that is stored when the playground ends.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Tell the guided tour: a CloneSet and a StatefulSet are created, updated, held, rolled back and scaled.
    #[arg(long)]
    demo: bool,
    /// End when the tour is over.
    #[arg(long, requires = "demo")]
    exit: bool,
    /// Only the API and the nodes: nothing is installed, or added to what --load brings; no manager and no agents run.
    #[arg(long, conflicts_with_all = ["demo", "verbose"])]
    bare: bool,
    /// Append a line for each request here, as a kube-apiserver's audit log has it at level Metadata; a file that is
    /// something else is left alone.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// The log of manager and agents on standard error instead of in a file.
    #[arg(short, long)]
    verbose: bool,
    /// Feature gates of manager and agents, as the manager takes them: `A=true,B=false`. They come on top of those
    /// that are set anyway.
    #[arg(
        long,
        value_name = "GATES",
        default_value = "",
        hide_default_value = true,
        conflicts_with = "bare"
    )]
    feature_gates: String,
    #[command(flatten)]
    times: times::Options,
}

impl Options {
    /// Fails if these options make no sense together, which the parser does not see.
    fn check(&self) -> Result<(), String> {
        if let Err(error) = Gates::parse(&self.feature_gates, "") {
            return Err(format!("--feature-gates: {error}"));
        }
        let zones = ZONES.len();
        if self.demo && usize::from(self.nodes) < zones {
            return Err(format!(
                "the tour of --demo needs a node in each of {zones} zones: give --nodes {zones} or more, or leave --nodes out"
            ));
        }
        Ok(())
    }
}

/// Runs a playground until Ctrl-C, or until the tour is over. Exit codes: 0 after Ctrl-C and after a tour whose claims
/// all held; 130 if the tour was interrupted; 2 if options make no sense together; 1 for everything else.
pub fn main(options: &Options) -> ExitCode {
    if let Err(error) = options.check() {
        output::report(format_args!("error: {error}"));
        return ExitCode::from(2);
    }
    let started = Instant::now();
    // Outlives the runtime, whose end waits for writes that are under way: a certificate may be among them.
    let mut folder = None;
    let ending = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run::run(options, started, &mut folder)));
    drop(folder);
    match ending {
        Ok(run::Ending::Finished) => ExitCode::SUCCESS,
        Ok(run::Ending::Interrupted) => {
            output::report("interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            output::report(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
