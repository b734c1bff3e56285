//! The executable of managers and of who installs them: `kruise manager`, `manifests`, `chart`, `crds`,
//! `migrate`, `preflight`, `uninstall`, `version` and, with the feature of that name, `playground`. Under the
//! names of upstream's programs it does what they do: `manager` and `helm_hook`. The agent of a node is an
//! executable of its own. `bundle`, `explain`, `inject` and `restart` are those of `kubectl-kruise`, for the
//! time being.

#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kruise_cli::{
    bundle, explain, inject,
    report::finish,
    restart,
    root::Connected,
    version::{self, Program},
};
use kruise_frame::output;
use kruise_install::{chart, crds, manifests, uninstall};
use kruise_manager as manager;
#[cfg(feature = "playground")]
use kruise_playground as playground;
use kruise_swap::{migrate, preflight};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// This executable.
const PROGRAM: Program = Program {
    name: "kruise",
    features: if cfg!(feature = "playground") {
        &["playground"]
    } else {
        &[]
    },
};

/// Workloads for Kubernetes that update pods without recreating them.
#[derive(Parser)]
#[command(name = "kruise", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controllers and webhooks. Takes upstream's flags: kruise manager --help.
    #[command(disable_help_flag = true)]
    Manager {
        /// Go-style flags.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// As kubectl-kruise bundle: facts for those who help, in an archive, without secrets.
    /// who help with it, without secrets.
    Bundle(Connected<bundle::Options>),
    /// Print everything an installation needs, for kubectl apply -f -.
    Manifests(manifests::Options),
    /// Write a Helm chart that installs the same.
    Chart(chart::Options),
    /// Print the definitions of all kinds, or compare those of a cluster with them.
    Crds(crds::Options),
    /// As kubectl-kruise explain: say what would be done with objects, what would not yet, and which limit
    /// decides it.
    Explain(Connected<explain::Options>),
    /// As kubectl-kruise inject: print pods with the sidecars that they would get.
    Inject(Connected<inject::Options>),
    /// Rewrite what is stored, when an installation changes from one version to another.
    Migrate(migrate::Options),
    /// Run a cluster to try things on, in this process: API, simulated nodes and the manager.
    #[cfg(feature = "playground")]
    Playground(playground::Options),
    /// Check a cluster of OpenKruise: what would happen if this program took over. Changes nothing.
    Preflight(preflight::CommandLine),
    /// As kubectl-kruise restart: restart containers of all pods of a workload. The pods stay.
    Restart(Connected<restart::CommandLine>),
    /// Check that the manager can be removed: nothing needs it any more. Releases what is being deleted.
    Uninstall(uninstall::Options),
    /// Print the version, and what this executable was built from.
    Version(version::Options),
}

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    match program.rsplit('/').next() {
        Some("manager") => return manager::main(arguments.collect()),
        Some("helm_hook") => return report(uninstall::run(&uninstall::Options::default())),
        _ => {}
    }
    match Cli::parse().command {
        Command::Manager { flags } => manager::main(flags),
        Command::Bundle(line) => finish(line.run(bundle::run)),
        Command::Manifests(options) => report(manifests::render(&options)),
        Command::Chart(options) => report(chart::run(&options)),
        Command::Crds(options) => {
            coded(crds::run(&options).map(|found| (found.text, u8::from(found.differs))))
        }
        Command::Explain(line) => finish(line.run(explain::run)),
        Command::Inject(line) => finish(line.run(inject::run)),
        Command::Migrate(options) => report(migrate::run(&options)),
        #[cfg(feature = "playground")]
        Command::Playground(options) => playground::main(&options),
        Command::Preflight(line) => coded(line.run().map(|found| (found.text, found.code))),
        Command::Restart(line) => finish(line.run(restart::run)),
        Command::Uninstall(options) => report(uninstall::run(&options)),
        Command::Version(options) => report(version::render(&options, PROGRAM)),
    }
}

/// Prints the result and ends with its exit code; with 2 on an error.
fn coded(found: anyhow::Result<(String, u8)>) -> ExitCode {
    let printed = found.and_then(|(text, code)| {
        output::print(&text)?;
        Ok(ExitCode::from(code))
    });
    printed.unwrap_or_else(|error| {
        output::report(format_args!("error: {error:#}"));
        ExitCode::from(2)
    })
}

/// Prints the text, or the error.
fn report(result: anyhow::Result<String>) -> ExitCode {
    match result.and_then(|text| Ok(output::print(&text)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::report(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
