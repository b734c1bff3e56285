//! `kruise-daemon`: the agent of a node as an executable, with upstream's name and flags.

#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use anyhow::Context;
use kruise_agent::{FLAGS, Settings, run};
use kruise_program::{command, gates::Gates};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    started(std::env::args().skip(1).collect()).unwrap_or_else(|code| code)
}

/// Runs the agent until a signal stops it. Exit codes are those of the manager.
fn started(line: Vec<String>) -> Result<ExitCode, ExitCode> {
    let values = command::parse(&FLAGS, line)?;
    let variable = |name: &str| std::env::var(name).ok();
    let gates = Gates::parse(
        values.get_string("feature-gates"),
        &variable("CUSTOM_RESOURCE_ENABLE").unwrap_or_default(),
    );
    let gates = command::checked(gates.context("--feature-gates"))?;
    let settings = Settings::new(&values, &|gate| gates.on(gate), &variable);
    let settings = command::checked(settings.map_err(anyhow::Error::from))?;
    command::start_log(&values, "")?;
    // One thread: the agent waits most of the time, and each further thread takes memory.
    let threads = tokio::runtime::Builder::new_current_thread();
    Ok(command::run(threads, async |stop| {
        let listener = settings.listen()?;
        Ok(run(settings, listener, stop).await?)
    }))
}
