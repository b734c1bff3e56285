//! A manager process but for its doors: the order in which its tasks start and stop.
//!
//! What it needs from where it runs comes in through [`Host`], and the doors (sockets, certificates) are opened by who
//! calls: the same process runs on a machine and in a simulation, where time is virtual and chance has a seed.

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use anyhow::bail;
use futures::future::join_all;
use kruise_plan_kit::injected::{Bug, is_injected};
use kruise_plan_kit::inplace::VerticalScaling;
use kruise_runtime::{
    Client, Served,
    caches::{Caches, Following, Jitter, Watches},
    discovery,
    freshness::{Followed, catch_up},
    lease::{self, Ending, Found},
    metrics::Metrics,
    shutdown,
};
use kruise_server::{configuration::DesiredCondition, webhook::Handler};
use tokio::{
    sync::{oneshot, watch},
    task::{JoinError, JoinSet},
};

use crate::{
    controllers::{self, Lookups},
    gates::Gates,
    leader::Decides,
};

use super::{
    admission,
    config::Config,
    registration::{Built, Parts, Server, agent, build_all},
    reviews::Reviews,
};

/// Time for webhook requests under way to be answered.
const DRAIN: Duration = Duration::from_secs(30);

/// Time to write the last events.
const FLUSH: Duration = Duration::from_secs(2);

/// What a process gets from where it runs.
pub struct Host {
    /// The way to the API server, and the time.
    pub client: Client,
    /// Which versions the cluster serves; `None` if the process is to find out.
    pub served: Option<Served>,
    /// Counters.
    pub metrics: Metrics,
    /// Name in the leader lease; no other process has it.
    pub identity: String,
    /// Uniform random numbers.
    pub jitter: Jitter,
    /// Told once the doors are open and the caches are full.
    pub ready: Option<oneshot::Sender<()>>,
    /// Turns true when the process is to end.
    pub stop: watch::Receiver<bool>,
}

/// Which handler answers which webhook path.
pub type Routes = BTreeMap<String, Handler>;

/// For which pods API servers are to call the webhook that injects, as the leader derives it.
pub type Wishes = watch::Receiver<DesiredCondition>;

/// Runs until told to stop, or until something fails that a restart must mend. `open` opens the doors: it gets the
/// webhooks to answer, for which pods, and a receiver that turns true when the doors are to close, and returns once API
/// servers reach them.
pub async fn process<Opening>(
    config: &Config,
    mut host: Host,
    open: impl FnOnce(Routes, Wishes, watch::Receiver<bool>) -> Opening + Send,
) -> anyhow::Result<()>
where
    Opening: Future<Output = anyhow::Result<JoinSet<()>>> + Send,
{
    let ready = host.ready.take();
    let served = match host.served.take() {
        Some(served) => Arc::new(served),
        None => Arc::new(discovery::discover(&host.client, &controllers::kinds()).await?),
    };
    let (client, metrics) = (&host.client, &host.metrics);
    say_what_is_served(&config.gates, &served);
    let server = ask(&config.gates, client, &served, config.namespace.as_deref()).await?;
    let lease = lease_settings(config, &host.identity);
    // Before the first lists: if it is free, and still is as it was when we take it, nobody writes after them.
    let before = match &lease {
        Some(lease) => lease::find(&host.client.named(&agent("leader-election")), lease)
            .await
            .ok(),
        None => None,
    };
    let mut caches = Caches::default();
    let lookups = Lookups::new(&mut caches, &served);
    let parts = Parts {
        config,
        served: &served,
        server: &server,
        lookups: &lookups,
        metrics,
        client,
    };
    let mut built = build_all(parts, &mut caches, &controllers::ALL);
    let written = join_all(std::mem::take(&mut built.events));
    // Reading an object may need the conversion webhook, so the listeners open before the watches.
    // They also close after everything else: pods that are still being created pass our own webhook.
    let (close, closing) = watch::channel(false);
    let started = async {
        let endpoints = if config.dry_run {
            JoinSet::new()
        } else {
            let cache = controllers::lookups::ReviewCache {
                lookups: lookups.clone(),
                pods: caches.informer(&controllers::caches::PODS),
                nodes: caches.informer(&controllers::caches::NODES),
                namespace: config.webhook.namespace.clone(),
            };
            let reviews = Reviews::new(
                controllers::reviews::options(config),
                cache,
                client.named(&agent("webhook")),
                metrics.pods.clone(),
            );
            let routes = admission::routes(reviews, config.gates.on("PodWebhook"));
            open(routes, lookups.condition(), closing.clone()).await?
        };
        let following = Following {
            client,
            served: &served,
            namespace: config.namespace.as_deref(),
            own_namespace: &config.webhook.namespace,
            patience: config.cache_sync_timeout,
            jitter: host.jitter.clone(),
            stop: closing,
        };
        let watches = caches.start(&following).await?;
        anyhow::Ok((endpoints, watches))
    };
    let (mut endpoints, watches) = tokio::select! {
        biased;
        started = started => started?,
        () = shutdown::stopped(host.stop.clone()) => return Ok(()),
    };
    if let Some(ready) = ready {
        // Nobody waits for it any more, perhaps.
        let _ = ready.send(());
    }
    let Watches {
        tasks: mut watches,
        followed,
    } = watches;
    let leading = lead(&host, &built, lease, before, &followed);
    let result = tokio::select! {
        biased;
        result = leading => result,
        // A frozen cache or a closed door looks healthy from outside: only a new process helps.
        Some(ended) = watches.join_next() => broken("a watch", &ended),
        Some(ended) = endpoints.join_next() => broken("an endpoint", &ended),
    };
    // The handlers hold the controllers, which hold the events: once both are gone, the last event is written.
    drop((watches, built, caches));
    let _ = tokio::time::timeout(FLUSH, written).await;
    // Nobody listens any more only when the endpoints have ended already.
    let _ = close.send(true);
    let _ = tokio::time::timeout(DRAIN, async { while endpoints.join_next().await.is_some() {} }).await;
    result
}

/// What decisions depend on that the server knows. It is asked only about what a gate wants.
pub(crate) async fn ask(
    gates: &Gates,
    client: &Client,
    served: &Served,
    namespace: Option<&str>,
) -> anyhow::Result<Server> {
    let mut server = Server::default();
    if gates.on("InPlaceWorkloadVerticalScaling") {
        server.vertical_scaling = VerticalScaling::of_server(&discovery::server_version(client).await?);
    }
    let grants = controllers::ALL
        .into_iter()
        .flat_map(|registration| registration.grants);
    for grant in grants {
        let Some(gate) = grant.gate.filter(|gate| gates.on(gate)) else {
            continue;
        };
        let Ok(path) = served.collection(grant.resource, namespace) else {
            continue;
        };
        if !discovery::may_list(client, &path).await? {
            tracing::warn!(
                "gate {gate} is on, but the manager may not list {}, so that nothing is done with them; \
                 `kruise manifests --feature-gates={gate}=true` prints the rights that it needs",
                grant.resource
            );
            server.denied.insert(grant.resource);
        }
    }
    Ok(server)
}

/// Logs which controllers run, which are off because the cluster does not serve their kind, and which kinds are only
/// stored.
fn say_what_is_served(gates: &Gates, served: &Served) {
    let mut running = Vec::new();
    for registration in controllers::ALL.into_iter().filter(|one| one.is_on(gates)) {
        match registration.resource() {
            Some(resource) if served.version(resource).is_none() => tracing::warn!(
                "{} is off: the cluster does not serve {resource}; install the definitions: \
                 kruise manifests | kubectl apply -f -",
                registration.name
            ),
            Some(resource) => {
                let version = served.version(resource).unwrap_or_default();
                running.push(format!("{} ({version})", registration.name));
            }
            None => running.push(registration.name.to_owned()),
        }
    }
    let others: Vec<&str> = controllers::kinds_without().map(|kind| kind.kind).collect();
    tracing::info!("controllers: {}", running.join(", "));
    tracing::warn!(
        "nothing acts on the other kinds, which are served and stored: {}",
        others.join(", ")
    );
}

/// Why a task that should run as long as the process ended before it.
fn broken(task: &str, ended: &Result<(), JoinError>) -> anyhow::Result<()> {
    match ended {
        Ok(()) => bail!("{task} ended"),
        Err(error) => bail!("{task} ended: {error}"),
    }
}

/// Runs the controllers while this process leads.
async fn lead(
    host: &Host,
    built: &Built,
    lease: Option<lease::Settings>,
    before: Option<Found>,
    followed: &[Followed],
) -> anyhow::Result<()> {
    let (metrics, stop) = (&host.metrics, host.stop.clone());
    let Some(lease) = lease else {
        run_all(built, stop).await;
        return Ok(());
    };
    let name = lease.name.clone();
    let (acquired, leads) = oneshot::channel();
    // The lease is kept until the controllers have ended, and only then released.
    let (release, released) = watch::channel(false);
    let client = host.client.named(&agent("leader-election"));
    let mut leading = pin!(lease::lead(&client, lease, metrics, released, move |found| {
        // Nobody listens any more only when the process is ending.
        let _ = acquired.send(found);
    }));
    let acquired = tokio::select! {
        biased;
        ending = &mut leading => return ended(ending),
        acquired = leads => acquired.ok(),
        () = shutdown::stopped(stop.clone()) => None,
    };
    if let Some(found) = acquired {
        metrics.leading(&name, true);
        tracing::info!(lease = name, "leading");
        let work = async {
            if !before.is_some_and(|before| before.is_unheld_until(&found)) {
                tokio::select! {
                    biased;
                    () = shutdown::stopped(stop.clone()) => return,
                    () = catch_up(&host.client, followed) => {}
                }
            }
            run_all(built, stop).await;
        };
        tokio::select! {
            biased;
            ending = &mut leading => return ended(ending),
            () = work => {}
        }
        metrics.leading(&name, false);
    }
    // Asks the elector to let go; if it is gone already, so is the lease.
    let _ = release.send(true);
    ended(leading.await)
}

/// How to compete for the lease; `None` for who needs none.
fn lease_settings(config: &Config, identity: &str) -> Option<lease::Settings> {
    let lease = config.lease.clone();
    let lease = lease.filter(|_| !config.dry_run && !is_injected(Bug::TwoLeaders))?;
    Some(lease::Settings {
        annotations: [Decides::of(config).annotation(identity)].into(),
        namespace: lease.namespace,
        name: lease.name,
        identity: identity.to_owned(),
        lease_duration: lease.duration,
        renew_deadline: lease.renew_deadline,
        retry_period: lease.retry_period,
    })
}

/// Losing the lease ends the process, so that nothing it still believes can reach the API.
fn ended(ending: Ending) -> anyhow::Result<()> {
    match ending {
        Ending::Stopped => Ok(()),
        Ending::Lost(why) => bail!("the leader lease was lost: {why}"),
    }
}

/// Runs the controllers, and what else only the leader does, until told to stop; what is under way ends in order. They
/// are told one after the other: a channel wakes those who wait for it in an order that differs from run to run.
async fn run_all(built: &Built, stop: watch::Receiver<bool>) {
    let mut ends = Vec::new();
    let mut end = || {
        let (sender, receiver) = watch::channel(false);
        ends.push(sender);
        receiver
    };
    let mut tasks = JoinSet::new();
    for controller in &built.controllers {
        tasks.spawn(controller.clone().run(end()));
    }
    for work in &built.leading {
        tasks.spawn(work(end()));
    }
    let tell = async {
        shutdown::stopped(stop).await;
        for end in &ends {
            end.send_replace(true);
        }
    };
    tokio::join!(tasks.join_all(), tell);
}
