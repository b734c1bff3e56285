//! The project's own commands: `cargo xtask <command>`.
//!
//! `lab` runs a real control plane, `e2e` the suite on it, `demo` a guided tour, `bench` measures, `tidy` holds the
//! rules of ARCHITECTURE.md. Nothing here is shipped.

mod lab;
mod workspace;

use clap::{Parser, Subcommand};

#[derive(Parser, Debug)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// A real control plane with simulated nodes.
    #[command(subcommand)]
    Lab(lab::LabCommand),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Task::Lab(command) => lab::run(command),
    }
}
