//! `kruise preflight`: what would happen to a cluster of OpenKruise if this program took over.
//!
//! It reads, and writes nothing. Each check is a module that returns a [`Check`]: a summary and its findings. A
//! finding is a *problem* if the swap would change pods or stop something, a *note* if people should know it, and
//! *unknown* if it could not be found out. Only without problems and unknowns is the swap advised.
//!
//! # What it promises
//! - The cluster and OpenKruise are not changed: no write is sent, no lease is taken, no webhook is registered.
//! - Plans are those of the manager: the process of `kruise manager --dry-run` plans each object once, with the
//!   feature gates and flags of the manager that runs now.
//! - What may not be read is reported, not left out.

mod agents;
mod cluster;
mod definitions;
mod managers;
mod objects;
mod older;
mod plans;
mod report;
mod rest;
mod reviewer;
mod settings;
#[cfg(test)]
mod tests;
mod webhooks;

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use kruise_frame::{command, profile::Profile};
use kruise_install::manifests;
use kruise_runtime::client::Source;

use cluster::Cluster;
pub use report::{Check, Finding, Report};
pub use rest::is_moving;

/// A command line that says which cluster, too.
#[derive(Args, Debug)]
pub struct CommandLine {
    /// Namespace of OpenKruise.
    #[arg(long, default_value = manifests::NAMESPACE)]
    namespace: String,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// What is checked, and how the result is printed.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub struct Options {
    /// Namespace of OpenKruise.
    #[arg(skip)]
    namespace: String,
    /// Feature gates of the manager that takes over, such as A=true,B=false; without it those of the manager that
    /// runs now.
    #[arg(long)]
    feature_gates: Option<String>,
    /// The new managers watch this namespace only, as with `kruise manifests --watch-namespace`.
    #[arg(long, value_name = "NAMESPACE", value_parser = manifests::reach::name)]
    watch_namespace: Option<String>,
    /// The new managers act on these kinds only, as with `kruise manifests --only`.
    #[arg(long, value_name = "KINDS", default_value = "", value_parser = kruise_kinds::profile)]
    only: Profile,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Time limit of the first lists and plans, in seconds.
    #[arg(long, default_value_t = 300)]
    timeout: u64,
}

impl CommandLine {
    /// Checks the cluster of the command line.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(&self) -> anyhow::Result<Found> {
        let source = self.kubeconfig.clone().map_or(Source::Inferred, Source::File);
        run(&source, &self.namespace, &self.options)
    }
}

/// How the result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The result of the command.
pub struct Found {
    /// Text for standard output.
    pub text: String,
    /// 0 if nothing is against the swap, 1 if there are problems, 2 if something could not be found out.
    pub code: u8,
}

/// Checks a cluster with OpenKruise in this namespace.
///
/// # Errors
/// Fails if the cluster cannot be reached.
pub fn run(source: &Source, namespace: &str, options: &Options) -> anyhow::Result<Found> {
    let options = &Options {
        namespace: namespace.to_owned(),
        ..options.clone()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let report = runtime.block_on(async {
        let cluster = Cluster::new(command::connect("preflight", source, Duration::from_mins(1)).await?);
        Box::pin(check(&cluster, options)).await
    })?;
    // A thread that waits for a connection does not hold up the end.
    runtime.shutdown_background();
    let text = match options.output {
        Format::Text => report.text(),
        Format::Json => report.json()?,
    };
    Ok(Found {
        text,
        code: report.exit_code(),
    })
}

/// Makes all checks. All but the first depend on settings only, and run side by side.
async fn check(cluster: &Cluster, options: &Options) -> anyhow::Result<Report> {
    let (settings, config) = settings::check(cluster, options).await?;
    let limit = Duration::from_secs(options.timeout);
    let (definitions, webhooks, managers, agents, objects, plans) = tokio::try_join!(
        async { Ok(definitions::check(cluster, &options.namespace).await) },
        async { Ok(webhooks::check(cluster, &options.namespace, &config).await) },
        managers::check(cluster, options),
        async { Ok(agents::check(cluster, &options.namespace).await) },
        objects::check(cluster, &config, &options.namespace),
        async { Ok(plans::check(cluster, config.clone(), limit).await) },
    )?;
    let plans = plans.result(&objects.moving);
    Ok(Report {
        pods_that_would_change: plans.pods,
        checks: [
            vec![settings, definitions, webhooks, managers, agents],
            objects.checks,
            vec![plans.check],
        ]
        .concat(),
    })
}

#[cfg(test)]
impl Options {
    /// The defaults, for a manager in this namespace.
    fn of(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            feature_gates: None,
            watch_namespace: None,
            only: Profile::default(),
            output: Format::Text,
            timeout: 300,
        }
    }
}
