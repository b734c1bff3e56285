//! The project's own commands: `cargo xtask <command>`.
//!
//! `demo` is the guided tour, `lab` runs a real control plane, `e2e` the suite on it, `bench` measures, `tidy`
//! holds the rules of ARCHITECTURE.md, `image` builds the image, `hunt` and `fuzz` explore. Nothing here is
//! shipped.

#![allow(clippy::disallowed_methods, reason = "commands run in real time")]

mod bench;
mod demo;
mod fuzz;
mod hunt;
mod image;
mod installation;
mod interrupt;
mod lab;
mod new_kind;
mod oci;
mod suite;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser, Debug)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// A guided tour: what a CloneSet and a StatefulSet do, on a real control plane, with what each step cost.
    Demo(demo::Options),
    /// A real control plane with simulated nodes.
    #[command(subcommand)]
    Lab(lab::LabCommand),
    /// The suite of tests/e2e on a real control plane, or on the embedded one.
    E2e(suite::Options),
    /// Measure a CloneSet's life: time, CPU, memory and API requests of the manager.
    Bench(bench::cloneset::Options),
    /// Measure three DaemonSets above many nodes, likewise.
    BenchDaemonsets(bench::daemonsets::Options),
    /// Measure the start of a manager, compared with a plain list of the pods.
    BenchStart(bench::start::Options),
    /// Measure `kruise preflight`, compared with plain lists of what it reads.
    BenchPreflight(bench::preflight::Options),
    /// Build the image of the manager, without a daemon: a layout that any OCI tool can push.
    Image(image::Options),
    /// Explore for some minutes: new seeds, other versions and nodes, mutants.
    Hunt(hunt::Options),
    /// Run the fuzz targets.
    Fuzz(fuzz::Options),
    /// Build and test the kind of fixtures/new-kind, which is one folder.
    NewKind,
    /// Check the rules of ARCHITECTURE.md.
    Tidy,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Task::Demo(options) => demo::run(&options),
        Task::Lab(command) => lab::run(command),
        Task::E2e(options) => suite::run(&options),
        Task::Bench(options) => bench::cloneset::run(&options),
        Task::BenchDaemonsets(options) => bench::daemonsets::run(&options),
        Task::BenchStart(options) => bench::start::run(&options),
        Task::BenchPreflight(options) => bench::preflight::run(&options),
        Task::Image(options) => image::run(&options),
        Task::Hunt(options) => hunt::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::NewKind => new_kind::run(),
        Task::Tidy => tidy::run(),
    };
    interrupt::exit_code(result)
}
