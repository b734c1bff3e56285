//! `kruise manager`: flags → configuration → tasks.

mod admission;
mod config;
mod elsewhere;
mod endpoints;
mod flags;
mod jitter;
mod logging;
mod narrow;
mod process;
mod registrar;
mod registration;
mod reviews;
mod run;
mod sockets;
mod verbosity;
mod watched_objects;
mod widening;

use std::process::ExitCode;

use anyhow::Context;
use go_compat::flags::FlagSet;
use kruise_runtime::shutdown;

use crate::output;

pub use config::{Config, LeaseConfig};
pub use flags::FLAGS;
pub(crate) use flags::flag;
#[cfg(feature = "playground")]
pub(crate) use logging::{start as to_stderr, to_file};
pub(crate) use process::server_facts;
pub use process::{Host, MatchConditions, Routes, process};
pub use registration::{Area, Controls, Grant, Limit, Registration, Runnable, ServerFacts, Setup, Wiring};
#[cfg(test)]
pub(crate) use run::longest_end;
pub use run::{Embedding, run};
pub use sockets::Sockets;

/// Runs the manager until a signal stops it. Exit codes are upstream's: 2 for a bad command line, 1 for any other error.
pub fn main(line: Vec<String>) -> ExitCode {
    let values = match FlagSet::new(&FLAGS).parse(line) {
        Ok(values) => values,
        Err(error) if error.help => {
            return match output::print(&error.usage) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Err(error) => {
            output::report(format_args!("{error}\n{}", error.usage));
            return ExitCode::from(2);
        }
    };
    let variable = |name: &str| std::env::var(name).ok();
    let config = match Config::new(&values, &variable) {
        Ok(config) => config.in_local_time(&variable),
        Err(error) => {
            output::report(format_args!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    if let Err(error) = logging::start(
        values.get_string("logging-format"),
        values.get_int("v"),
        values.get_string("vmodule"),
    ) {
        output::report(format_args!("{error:#}"));
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(async {
            let stop = shutdown::on_signal().context("cannot listen for signals")?;
            run(config, None, stop).await
        }),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
