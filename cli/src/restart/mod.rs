//! `kubectl-kruise restart`: restarts containers of all pods of a workload, and keeps the pods.
//!
//! It creates a ContainerRecreateRequest for one pod after another, and waits. At each moment no more pods
//! are out of service than `maxUnavailable` of the workload allows; a pod counts until the workload calls it
//! available again, and as long as any request for it is open, whoever created that. The first request that
//! fails ends it. The requests are OpenKruise's, so its node daemon serves them too.
//!
//! A request that passes (no connection, no answer, 429, 5xx) is repeated. A request that may exist counts as
//! one that does, until it is seen, and is created again under the same name.

mod agents;
mod choice;
mod passing;
mod requests;
mod rollout;
mod target;
#[cfg(test)]
mod tests;
mod workload;

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use clap::Args;
use kruise_program::output;
use kruise_runtime::{Client, discovery};
use kruise_views::PodView;
use tokio::time::{Instant, sleep};

pub use self::workload::Workload;

use self::{
    choice::{pods_now, stuck, to_restart},
    passing::is_passing,
    requests::Requests,
    rollout::{Next, Pod, Rollout, States},
    target::{Limits, Target, can_be_restarted},
};
use crate::{
    cluster::Cluster,
    connection::Connection,
    failure,
    report::Report,
    run,
    target::{Selection, Wanted},
};

/// How often the cluster is looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// The component of its user agent.
pub const AGENT: &str = "kruise-restart";

/// Receives lines about what happens.
pub type Say = dyn Fn(&str) -> anyhow::Result<()> + Send + Sync;

/// Examples of its command line.
pub const EXAMPLES: &[(&str, &str)] = &[
    (
        "One container of each pod",
        "kubectl kruise restart clone/web -c main",
    ),
    (
        "Two containers, one after the other",
        "kubectl kruise restart asts/db -c db,proxy --ordered",
    ),
    (
        "All CloneSets with a label",
        "kubectl kruise restart clone -l app=web -c main",
    ),
];

/// The command line.
#[derive(Args, Clone, Debug)]
pub struct CommandLine {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    options: Options,
}

/// Which containers are restarted, and how.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub struct Options {
    /// The containers, in the order in which a pod restarts them.
    #[arg(short, long, required = true, value_delimiter = ',', value_name = "NAMES")]
    pub containers: Vec<String>,
    /// Restart a container of a pod once the one before runs anew, not all at once.
    #[arg(long)]
    pub ordered: bool,
    /// Seconds that a pod is out of service before its containers are stopped. Pods with the readiness gate
    /// `KruisePodReady` only.
    #[arg(long, value_name = "SECONDS")]
    pub unready_grace: Option<u32>,
    /// Seconds for a pod, until its containers run anew and until it is available again.
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub timeout: u32,
    /// Seconds after its end when a request is deleted; at least 60.
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(60..))]
    pub keep: u32,
    /// Seconds that the API server may fail before this ends; what has begun goes on.
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub wait_for_server: u32,
    /// Namespace of the node agents.
    #[arg(long, default_value = "kruise-system", value_name = "NAMESPACE")]
    pub manager_namespace: String,
    /// Go on waiting where no pod of a node agent runs: it may run otherwise.
    #[arg(long)]
    pub any_agent: bool,
}

/// Restarts the containers of one workload after the other, and prints a line for each pod. Ends when all run
/// anew.
///
/// # Errors
/// If a workload or a container does not exist, a node has no agent, a request fails, or nothing changes for
/// as long as the options say.
pub fn run(connection: &Connection, line: &CommandLine) -> anyhow::Result<Report> {
    let (wanted, _) = line.selection.wanted("restarted", can_be_restarted)?;
    run::to_end(async {
        let client = connection.connect("restart").await?;
        let namespace = connection.namespace(&client);
        let mut report = Report::default();
        for workload in workloads(&client, namespace, &line.selection, &wanted).await? {
            let restarted = restart(&workload, &line.options, &client, &|line| {
                Ok(output::print(line)?)
            })
            .await;
            match restarted {
                Ok(line) => output::print(&line)?,
                Err(error) => report.add(Err(error)),
            }
        }
        Ok(report)
    })
}

async fn workloads(
    client: &Client,
    namespace: &str,
    selection: &Selection,
    wanted: &[Wanted],
) -> anyhow::Result<Vec<Workload>> {
    let mut workloads = Vec::new();
    for wanted in wanted {
        match wanted {
            Wanted::One(resources, name) => workloads.extend(resources.first().map(|resource| Workload {
                resource: *resource,
                namespace: namespace.to_owned(),
                name: name.clone(),
            })),
            Wanted::All(resource) => {
                let cluster = Cluster::discover(client).await?;
                let names = cluster.names(resource, namespace, selection).await?;
                workloads.extend(names.into_iter().map(|(namespace, name)| Workload {
                    resource: *resource,
                    namespace,
                    name,
                }));
            }
        }
    }
    if workloads.is_empty() {
        bail!("there is no such workload in namespace {namespace}");
    }
    Ok(workloads)
}

/// Restarts the containers of one workload with a client that is there. Returns the last line; `say` receives
/// the others. May be dropped at any time.
///
/// # Errors
/// As [`run`].
pub async fn restart(
    workload: &Workload,
    options: &Options,
    client: &Client,
    say: &Say,
) -> anyhow::Result<String> {
    let mut server = Server::new(options, say);
    let (target, mut requests, all, limits) = loop {
        match begin(workload, options, client, say).await {
            Err(error) => server.failed(error)?,
            begun => break begun?,
        }
        sleep(PERIOD).await;
    };
    server.answered();
    if all.is_empty() {
        return Ok(format!("{} has no pods\n", target.title));
    }
    let (pods, left_out) = to_restart(&all, &options.containers)?;
    for pod in left_out {
        say(&format!("{pod}: left out, its containers have not started yet\n"))?;
    }
    let run = Run {
        options,
        client,
        target,
        all: &all,
        rollout: Rollout { pods },
    };
    say(&format!(
        "{}: {} pods, at most {} of {} out of service\n",
        run.target.title,
        run.rollout.pods.len(),
        limits.most_out,
        limits.wanted
    ))?;
    run.to_end(&mut requests, &mut server).await
}

/// A restart that has begun.
struct Run<'r> {
    options: &'r Options,
    client: &'r Client,
    target: Target<'r>,
    /// The pods at the beginning.
    all: &'r [Arc<PodView>],
    rollout: Rollout,
}

impl Run<'_> {
    /// Creates one request after the other, until all containers run anew. Returns the last line.
    async fn to_end(&self, requests: &mut Requests<'_>, server: &mut Server<'_>) -> anyhow::Result<String> {
        let seconds = self.options.timeout;
        let timeout = Duration::from_secs(seconds.into());
        let (mut before, mut changed) = (None, Instant::now());
        loop {
            match look(&self.target, requests).await {
                Ok((limits, pods, states)) => {
                    server.answered();
                    match self.rollout.next(limits, &pods, &states) {
                        Next::Done => return Ok(format!("{}: restarted\n", self.target.title)),
                        Next::Failed(why) => bail!("{why}; no further pod is restarted"),
                        Next::Create(names) => requests.create_all(&names, &self.rollout).await?,
                    }
                    let now = (pods, states);
                    if before.as_ref() != Some(&now) {
                        (before, changed) = (Some(now), Instant::now());
                    } else if changed.elapsed() > timeout {
                        bail!("{}", stuck(limits.wanted, &now.0, seconds));
                    }
                }
                Err(error) => server.failed(error)?,
            }
            if let Err(error) = self.attended(requests).await {
                server.failed(error)?;
            }
            sleep(PERIOD).await;
        }
    }

    /// Fails if nobody takes up a request because its node has no agent. The request is withdrawn then: an agent
    /// that comes later would follow it when nobody expects that any more.
    async fn attended(&self, requests: &mut Requests<'_>) -> anyhow::Result<()> {
        if self.options.any_agent {
            return Ok(());
        }
        let idle = requests.newly_idle();
        if idle.is_empty() {
            return Ok(());
        }
        let pods = self.all.iter();
        let pods = pods.filter(|pod| idle.iter().any(|name| **name == *pod.name));
        let pods: Vec<Arc<PodView>> = pods.cloned().collect();
        let namespace = &self.options.manager_namespace;
        if let Some(missing) = agents::missing(self.client, namespace, &pods).await? {
            requests.withdraw(&idle).await?;
            bail!(missing);
        }
        Ok(())
    }
}

/// For how long the API server has failed.
struct Server<'s> {
    patience: Duration,
    failing: Option<Instant>,
    say: &'s Say,
}

impl<'s> Server<'s> {
    fn new(options: &Options, say: &'s Say) -> Self {
        Self {
            patience: Duration::from_secs(options.wait_for_server.into()),
            failing: None,
            say,
        }
    }

    fn answered(&mut self) {
        self.failing = None;
    }

    /// Says so at once. Fails if the error does not pass by itself, or for too long.
    fn failed(&mut self, error: anyhow::Error) -> anyhow::Result<()> {
        if !is_passing(&error) {
            return Err(error);
        }
        match self.failing {
            Some(since) if since.elapsed() > self.patience => return Err(error),
            Some(_) => {}
            None => {
                self.failing = Some(Instant::now());
                let (why, seconds) = (failure::line(&error), self.patience.as_secs());
                (self.say)(&format!("{why}; asks again for {seconds} s\n"))?;
            }
        }
        Ok(())
    }
}

/// The workload, its requests, its pods and what it allows.
async fn begin<'r>(
    workload: &Workload,
    options: &'r Options,
    client: &'r Client,
    say: &'r Say,
) -> anyhow::Result<(Target<'r>, Requests<'r>, Vec<Arc<PodView>>, Limits)> {
    let served = discovery::discover(client, kruise_kinds::kinds(), &[]).await?;
    let target = Target::read(client, &served, workload).await?;
    let namespace = Some(workload.namespace.as_str());
    let collection = served.collection(kruise_api::containerrecreaterequest::RESOURCE, namespace)?;
    let api_version = served.api_version(kruise_api::containerrecreaterequest::RESOURCE)?;
    let requests = Requests::new(client, (collection, api_version), options, say);
    let limits = target.limits().await?;
    let pods = target.pods().await?;
    Ok((target, requests, pods, limits))
}

/// What the cluster shows now. The pods are read last: a pod whose request has ended was restarted when they
/// were.
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
