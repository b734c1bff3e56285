//! What commands have in common: a client of the cluster; for those that take Go-style flags reading them, and how
//! they end.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use go_compat::flags::{Flag, FlagSet, Values};
use kruise_runtime::{
    Client, Clock,
    client::{self, Source},
    shutdown,
};
use tokio::{runtime, sync::watch};

use crate::logging;
use crate::output;

/// How long a thread that waits for a disk may hold up the end.
const LAST_THREADS: Duration = Duration::from_secs(1);

/// A client for the command of this name, without a limit of requests. Each request ends after `timeout`.
pub async fn connect(command: &str, source: &Source, timeout: Duration) -> anyhow::Result<Client> {
    let settings = client::Settings {
        user_agent: format!("kruise-{command}"),
        timeout,
        rate: None,
        host: String::new(),
        clock: Clock::SYSTEM,
        observer: None,
    };
    Ok(client::connect(source, settings).await?)
}

/// Reads a command line. A request for help, and a line that cannot be read, are answered and give an exit code:
/// upstream's.
pub fn parse(flags: &'static [Flag], line: Vec<String>) -> Result<Values, ExitCode> {
    match FlagSet::new(flags).parse(line) {
        Ok(values) => Ok(values),
        Err(error) if error.help => Err(match output::print(&error.usage) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }),
        Err(error) => {
            output::report(format_args!("{error}\n{}", error.usage));
            Err(ExitCode::from(2))
        }
    }
}

/// The result of reading settings; a mistake is reported, and gives the exit code of a bad command line.
pub fn checked<T>(settings: anyhow::Result<T>) -> Result<T, ExitCode> {
    settings.map_err(|error| {
        output::report(format_args!("{error:#}"));
        ExitCode::from(2)
    })
}

/// Starts the log as the flags say.
pub fn start_log(values: &Values, of: &str) -> Result<(), ExitCode> {
    checked(logging::start(
        values.get_string("logging-format"),
        values.get_int("v"),
        of,
    ))
}

/// Runs until the end, on threads of this kind. An error is logged.
pub fn run(
    mut threads: runtime::Builder,
    body: impl AsyncFnOnce(watch::Receiver<bool>) -> anyhow::Result<()>,
) -> ExitCode {
    let result = match threads.enable_all().build() {
        Ok(runtime) => {
            let result = runtime.block_on(async {
                let stop = shutdown::on_signal().context("cannot listen for signals")?;
                body(stop).await
            });
            runtime.shutdown_timeout(LAST_THREADS);
            result
        }
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
