//! `kruise migrate`: one-time changes of an installation between versions.

mod definition;
mod place;
mod rewrite;
mod storage;

use clap::{Args, Subcommand};

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
}

/// Migrates. The progress is printed to standard error.
pub fn run(options: &Options) -> anyhow::Result<String> {
    match &options.what {
        What::Storage(options) => storage::run(options),
    }
}
