//! `kruise manager`: flags → configuration → tasks.

mod admission;
mod caches;
mod cloneset;
mod config;
mod endpoints;
mod flags;
mod logging;
mod objects;
mod pod_readiness;
mod process;
mod registrar;
mod run;

use std::process::ExitCode;

use go_compat::flags::FlagSet;

pub use caches::Jitter;
pub use cloneset::World;
pub use config::{Config, LeaseConfig};
pub use flags::FLAGS;
pub use objects::CachedCloneSet;
pub use process::{Host, Routes, process};

/// Runs the manager until it is told to stop. Exit codes are upstream's: 2 for a bad command line, 1 for anything else
/// that keeps it from working.
pub fn main(line: Vec<String>) -> ExitCode {
    let values = match FlagSet::new(flags::FLAGS).parse(line) {
        Ok(values) => values,
        Err(error) if error.help => {
            print!("{}", error.usage);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error}\n{}", error.usage);
            return ExitCode::from(2);
        }
    };
    let config = match Config::new(&values, &|name| std::env::var(name).ok()) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::from(2);
        }
    };
    if let Err(error) = logging::start(values.get_string("logging-format"), values.get_int("v")) {
        eprintln!("{error:#}");
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run::run(config)),
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
