//! `kruise migrate`: one-time changes of an installation between versions.

mod cluster;
mod definition;
mod names;
mod owners;
mod paced;
mod place;
mod preview;
mod rewrite;
mod storage;

use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use kruise_frame::command;
use kruise_runtime::{Client, client::Source};

/// What to migrate.
#[derive(Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Rewrite stored objects in the version that their definition stores now, and forget the versions before.
    Storage(storage::Options),
    /// Let pods, revisions, claims and jobs name their owners in another version, before a definition loses the one
    /// that they name.
    Owners(owners::Options),
}

/// Migrates. The progress is printed to standard error.
pub fn run(options: &Options) -> anyhow::Result<String> {
    match &options.what {
        What::Storage(options) => storage::run(options),
        What::Owners(options) => owners::run(options),
    }
}

/// Connects without a limit of requests: each command has its own.
async fn connect(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let source = kubeconfig.map_or(Source::Inferred, |path| Source::File(path.to_owned()));
    command::connect("migrate", &source, Duration::from_mins(1)).await
}

/// Reads a number of requests in a second.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=1e6).contains(&rate) => Ok(rate),
        _ => Err("must be a number from 0.001 to 1000000".to_owned()),
    }
}
