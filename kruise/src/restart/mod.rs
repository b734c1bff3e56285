//! `kruise restart`: restarts containers of all pods of a workload, and keeps the pods.
//!
//! It creates a ContainerRecreateRequest for one pod after another, and waits. At each moment no more pods are out of service than
//! `maxUnavailable` of the workload allows; a pod counts until the workload calls it available again, and as long as any request
//! for it is open, whoever created that. The first request that fails ends it. The requests are OpenKruise's, so its node daemon
//! serves them too.
//!
//! A request that passes (no connection, no answer, 429, 5xx) is repeated. A request that may exist counts as one that does, until
//! it is seen, and is created again under the same name.

mod choice;
mod passing;
mod requests;
mod rollout;
mod target;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::bail;
use clap::Args;
use kruise_frame::{command, output};
use kruise_runtime::{Client, client::Source, discovery};
use kruise_views::PodView;
use tokio::time::{Instant, sleep};

use self::{
    choice::{pods_now, stuck, to_restart},
    passing::is_passing,
    requests::Requests,
    rollout::{Next, Pod, Rollout, States},
    target::{Limits, Target},
};

/// How often the cluster is looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a request to the API server may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The component of its user agent.
pub const AGENT: &str = "kruise-restart";

/// Receives lines about what happens.
pub type Say = dyn Fn(&str) -> anyhow::Result<()> + Send + Sync;

/// Which containers of which workload are restarted.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// `clone/NAME`, `sts/NAME` or `daemon/NAME`.
    pub workload: String,
    /// The containers, in the order in which a pod restarts them.
    #[arg(short, long, required = true, value_delimiter = ',', value_name = "NAMES")]
    pub containers: Vec<String>,
    /// Namespace of the workload; without it that of the kubeconfig's context.
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Restart a container of a pod once the one before runs anew, not all at once.
    #[arg(long)]
    pub ordered: bool,
    /// Seconds that a pod is out of service before its containers are stopped. Pods with the readiness gate `KruisePodReady` only.
    #[arg(long, value_name = "SECONDS")]
    pub unready_grace: Option<u32>,
    /// Seconds for a pod, until its containers run anew and until it is available again; and how long the API server may fail.
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub timeout: u32,
    /// Seconds after its end when a request is deleted; at least 60.
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(60..))]
    pub keep: u32,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
}

/// Restarts the containers, and prints a line for each pod. Ends when all run anew.
///
/// # Errors
/// If the workload or a container does not exist, a request fails, or nothing changes for as long as the options say.
pub fn run(options: &Options) -> anyhow::Result<String> {
    let source = options.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = command::connect("restart", &source, PATIENCE).await?;
        restart(options, &client, &|line| Ok(output::print(line)?)).await
    })
}

/// The same with a client that is there. Returns the last line; `say` receives the others. May be dropped at any time.
///
/// # Errors
/// As [`run`].
pub async fn restart(options: &Options, client: &Client, say: &Say) -> anyhow::Result<String> {
    let timeout = Duration::from_secs(options.timeout.into());
    let started = Instant::now();
    let (target, mut requests, all, limits) = loop {
        match begin(options, client, say).await {
            Err(error) if is_passing(&error) && started.elapsed() <= timeout => sleep(PERIOD).await,
            begun => break begun?,
        }
    };
    if all.is_empty() {
        return Ok(format!("{} has no pods\n", target.title));
    }
    let (pods, left_out) = to_restart(&all, &options.containers)?;
    for pod in left_out {
        say(&format!("{pod}: left out, its containers have not started yet\n"))?;
    }
    let rollout = Rollout { pods };
    say(&format!(
        "{}: {} pods, at most {} of {} out of service\n",
        target.title,
        rollout.pods.len(),
        limits.most_out,
        limits.wanted
    ))?;
    let mut before = None;
    let (mut changed, mut answered) = (Instant::now(), Instant::now());
    loop {
        match look(&target, &mut requests).await {
            Ok((limits, pods, states)) => {
                answered = Instant::now();
                match rollout.next(limits, &pods, &states) {
                    Next::Done => return Ok(format!("{}: restarted\n", target.title)),
                    Next::Failed(why) => bail!("{why}; no further pod is restarted"),
                    Next::Create(names) => requests.create_all(&names, &rollout).await?,
                }
                let now = (pods, states);
                if before.as_ref() != Some(&now) {
                    (before, changed) = (Some(now), Instant::now());
                } else if changed.elapsed() > timeout {
                    bail!("{}", stuck(limits.wanted, &now.0, options.timeout));
                }
            }
            Err(error) if is_passing(&error) && answered.elapsed() <= timeout => {}
            Err(error) => return Err(error),
        }
        sleep(PERIOD).await;
    }
}

/// The workload, its requests, its pods and what it allows.
async fn begin<'r>(
    options: &'r Options,
    client: &'r Client,
    say: &'r Say,
) -> anyhow::Result<(Target<'r>, Requests<'r>, Vec<Arc<PodView>>, Limits)> {
    let namespace = options.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| client.default_namespace());
    let served = discovery::discover(client, kruise_kinds::kinds(), &[]).await?;
    let target = Target::read(client, &served, namespace, &options.workload).await?;
    let collection = served.collection(kruise_api::containerrecreaterequest::RESOURCE, Some(namespace))?;
    let api_version = served.api_version(kruise_api::containerrecreaterequest::RESOURCE)?;
    let requests = Requests::new(client, (collection, api_version), options, say);
    let limits = target.limits().await?;
    let pods = target.pods().await?;
    Ok((target, requests, pods, limits))
}

/// What the cluster shows now. The pods are read last: a pod whose request has ended was restarted when they were.
async fn look(
    target: &Target<'_>,
    requests: &mut Requests<'_>,
) -> anyhow::Result<(Limits, Vec<Pod>, States)> {
    let limits = target.limits().await?;
    let looked = requests.look().await?;
    let pods = target.pods().await?;
    let pods = pods_now(&pods, &looked.of_others, limits.min_ready_seconds, target.now());
    Ok((limits, pods, looked.own))
}
