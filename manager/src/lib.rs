//! `kruise manager`: flags → configuration → tasks.
//!
//! The process reviews requests, charges budgets, and runs the controllers of [`kruise_kinds`].

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod admission;
mod callers;
mod elsewhere;
mod endpoints;
mod flags;
mod memory;
mod narrow;
mod printed;
mod process;
mod reasons;
mod registrar;
mod rehearsal;
mod reviews;
mod run;
mod side_effects;
mod sockets;
#[cfg(test)]
mod tests;
mod verbosity;
mod watched_objects;
mod widening;

use std::process::ExitCode;

use kruise_frame::{command, config::Config, output};
use kruise_kinds::{self as controllers, refusals};
use kruise_runtime::metrics::objects::Spec;

use rehearsal::Rehearsal;
use run::run_with;

pub use flags::FLAGS;
pub use process::{Host, MatchConditions, Routes, process};
pub use reasons::reasons;
pub use run::longest_end;
pub use run::{Embedding, run};
pub use sockets::Sockets;

/// The metrics that controllers and guards declare.
pub fn metrics() -> Vec<&'static Spec> {
    let declared = controllers::metrics().into_iter();
    declared.chain(refusals::METRICS).collect()
}

/// Runs the manager until a signal stops it. Exit codes are upstream's: 2 for a bad command line, 1 for any other
/// error, and for differences that a dry run found.
pub fn main(line: Vec<String>) -> ExitCode {
    started(line).unwrap_or_else(|code| code)
}

fn started(line: Vec<String>) -> Result<ExitCode, ExitCode> {
    let values = command::parse(&FLAGS, line)?;
    let variable = |name: &str| std::env::var(name).ok();
    let config = command::checked(Config::new(
        &values,
        controllers::limits(),
        controllers::kinds(),
        &variable,
    ))?
    .in_local_time(&variable);
    command::start_log(&values, values.get_string("vmodule"))?;
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.worker_threads(2);
    let rehearsal = config.dry_run.then(Rehearsal::new);
    let ended = command::run(threads, async |stop| {
        run_with(config, None, rehearsal.clone(), stop).await
    });
    Ok(rehearsal.map_or(ended, |rehearsal| reported(&rehearsal, ended)))
}

/// Prints what a rehearsal found. The exit code is that of the manager, or else 1 if there are differences.
fn reported(rehearsal: &Rehearsal, ended: ExitCode) -> ExitCode {
    let (text, differs) = rehearsal.result();
    let is_printed = output::print(&text).is_ok();
    if ended == ExitCode::SUCCESS && (differs || !is_printed) {
        ExitCode::FAILURE
    } else {
        ended
    }
}
