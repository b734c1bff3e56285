//! The tasks of a manager and the order in which they start and stop.

use std::{pin::pin, sync::Arc, time::Duration};

use anyhow::bail;
use kruise_runtime::{
    Client,
    client::{self, Source},
    discovery,
    events::EventSink,
    lease::{self, Ending},
    metrics::Metrics,
    shutdown,
    worker::{Controller, Settings},
};
use kube_cache::{Cached, ObjectKey};
use prometheus_client::registry::Registry;
use tokio::{
    sync::{oneshot, watch},
    task::{JoinError, JoinSet},
};

use super::{
    caches::{Caches, Handlers},
    cloneset::{self, CloneSets},
    config::{Config, LeaseConfig},
    endpoints::{self, Sockets},
    pod_readiness::{self, PodReadiness},
};

/// Time a request other than a watch may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for webhook requests under way to be answered.
const DRAIN: Duration = Duration::from_secs(30);

/// Time to write the last events.
const FLUSH: Duration = Duration::from_secs(2);

/// What a manager is given that is part of something else.
#[derive(Debug)]
pub struct Embedding {
    /// Where it listens, instead of where the configuration says.
    pub sockets: Sockets,
    /// Told once webhooks are registered and caches are full.
    pub ready: oneshot::Sender<()>,
}

/// Runs until told to stop, or until something fails that a restart must mend.
pub async fn run(
    config: Config,
    embedding: Option<Embedding>,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let client = connect(&config, &metrics).await?;
    let clonesets = discovery::cloneset_version(&client).await?;
    discovery::check_conversion(&client).await?;
    tracing::info!(version = clonesets, "CloneSets are served");
    tracing::warn!(
        "this build runs {} and {}; the other controllers of upstream are not part of it",
        cloneset::NAME,
        pod_readiness::NAME
    );
    let (sockets, ready) = embedding.map(|given| (given.sockets, given.ready)).unzip();
    let caches = Caches::new();
    // Reading a CloneSet may need the conversion webhook, so the endpoints come before the watches.
    // They also end after everything else: pods that are still being created pass our own webhook.
    let (close, closing) = watch::channel(false);
    let (events, written) = EventSink::spawn(client.named(&agent(cloneset::NAME)), cloneset::NAME);
    let controllers = Controllers::new(&config, &client, clonesets, &caches, &metrics, events);
    let started = async {
        let served = if config.dry_run {
            JoinSet::new()
        } else {
            let sockets = match sockets {
                Some(open) => open,
                None => Sockets::bind(&config).await?,
            };
            endpoints::start(&config, &client, &caches, registry, sockets, closing.clone()).await?
        };
        let namespace = config.namespace.as_deref();
        let watches = caches
            .start(
                &client,
                clonesets,
                namespace,
                controllers.handlers(),
                closing,
                config.cache_sync_timeout,
            )
            .await?;
        anyhow::Ok((served, watches))
    };
    let (mut served, mut watches) = tokio::select! {
        started = started => started?,
        () = shutdown::stopped(stop.clone()) => return Ok(()),
    };
    if let Some(ready) = ready {
        // Nobody waits for it any more, perhaps.
        let _ = ready.send(());
    }
    let leading = lead(&config, &client, controllers, &metrics, stop);
    let result = tokio::select! {
        result = leading => result,
        // A frozen cache or a closed door looks healthy from outside: only a new process helps.
        Some(ended) = watches.join_next() => broken("a watch", &ended),
        Some(ended) = served.join_next() => broken("an endpoint", &ended),
    };
    // The handlers hold the controllers, which hold the events: once the watches are gone, the last event is written.
    drop(watches);
    let _ = tokio::time::timeout(FLUSH, written).await;
    // Nobody listens any more only when the endpoints have ended already.
    let _ = close.send(true);
    let _ = tokio::time::timeout(DRAIN, async { while served.join_next().await.is_some() {} }).await;
    result
}

/// Why a task that should run as long as the process ended before it.
fn broken(task: &str, ended: &Result<(), JoinError>) -> anyhow::Result<()> {
    match ended {
        Ok(()) => bail!("{task} ended"),
        Err(error) => bail!("{task} ended: {error}"),
    }
}

fn agent(component: &str) -> String {
    format!("kruise-manager/{component}")
}

async fn connect(config: &Config, metrics: &Metrics) -> anyhow::Result<Client> {
    let source = config.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let settings = client::Settings {
        user_agent: "kruise-manager".into(),
        timeout: REQUEST_TIMEOUT,
        rate: config.pace.map(|(qps, burst)| (f64::from(qps), burst)),
        host: String::new(),
        observer: Some(Arc::new(metrics.clone())),
    };
    Ok(client::connect(&source, settings).await?)
}

/// Runs the controllers while this process leads.
async fn lead(
    config: &Config,
    client: &Client,
    controllers: Controllers,
    metrics: &Metrics,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let lease = match &config.lease {
        Some(lease) if !config.dry_run => lease.clone(),
        _ => {
            controllers.run(stop).await;
            return Ok(());
        }
    };
    let name = lease.name.clone();
    let (acquired, leads) = oneshot::channel();
    // The lease is kept until the controllers have ended, and only then released.
    let (release, released) = watch::channel(false);
    let client = client.named(&agent("leader-election"));
    let mut leading = pin!(lease::lead(
        &client,
        settings(lease),
        metrics,
        released,
        move || {
            // Nobody listens any more only when the process is ending.
            let _ = acquired.send(());
        }
    ));
    let acquired = tokio::select! {
        ending = &mut leading => return ended(ending),
        acquired = leads => acquired.is_ok(),
        () = shutdown::stopped(stop.clone()) => false,
    };
    if acquired {
        metrics.leading(&name, true);
        tracing::info!(lease = name, "leading");
        tokio::select! {
            ending = &mut leading => return ended(ending),
            () = controllers.run(stop) => {}
        }
        metrics.leading(&name, false);
    }
    // Asks the elector to let go; if it is gone already, so is the lease.
    let _ = release.send(true);
    ended(leading.await)
}

fn settings(lease: LeaseConfig) -> lease::Settings {
    lease::Settings {
        namespace: lease.namespace,
        name: lease.name,
        identity: lease::identity(),
        lease_duration: lease.duration,
        renew_deadline: lease.renew_deadline,
        retry_period: lease.retry_period,
    }
}

/// Losing the lease ends the process, so that nothing it still believes can reach the API.
fn ended(ending: Ending) -> anyhow::Result<()> {
    match ending {
        Ending::Stopped => Ok(()),
        Ending::Lost(why) => bail!("the leader lease was lost: {why}"),
    }
}

/// The controllers, wired to the caches.
struct Controllers {
    sets: Arc<Controller<CloneSets>>,
    readiness: Arc<Controller<PodReadiness>>,
}

impl Controllers {
    fn new(
        config: &Config,
        client: &Client,
        clonesets: &str,
        caches: &Caches,
        metrics: &Metrics,
        events: EventSink,
    ) -> Self {
        let settings = |name, workers| Settings {
            name,
            workers,
            queue: config.retries,
            expectation_timeout: config.expectation_timeout,
            clonesets: clonesets.to_owned(),
            dry_run: config.dry_run,
        };
        let sets = CloneSets {
            caches: caches.clone(),
            api_version: format!("{}/{clonesets}", kruise_api::names::APPS_GROUP),
            options: config.cloneset_options(),
            events,
            metrics: metrics.clone(),
        };
        let readiness = PodReadiness {
            caches: caches.clone(),
        };
        let (sets_workers, pod_workers) = (config.cloneset_workers, pod_readiness::WORKERS);
        Self {
            sets: Controller::new(
                sets,
                settings(cloneset::NAME, sets_workers),
                client.named(&agent(cloneset::NAME)),
                metrics.controller(cloneset::NAME, sets_workers),
                |key| &key.namespace,
            ),
            readiness: Controller::new(
                readiness,
                settings(pod_readiness::NAME, pod_workers),
                client.named(&agent(pod_readiness::NAME)),
                metrics.controller(pod_readiness::NAME, pod_workers),
                |key| &key.namespace,
            ),
        }
    }

    fn handlers(&self) -> Handlers {
        let (of_set, of_pod, of_revision) = (self.sets.clone(), self.sets.clone(), self.sets.clone());
        let readiness = self.readiness.clone();
        Handlers {
            set: Box::new(move |delta| of_set.push_all(delta.latest().map(|set| ObjectKey::of(&**set)))),
            pod: Box::new(move |delta| {
                of_pod.push_all(cloneset::owners_of(&delta));
                // One that was concerned and is no more is forgotten at its last look.
                let either = delta.new.iter().chain(&delta.old);
                let concerned = either
                    .filter(|pod| kruise_plan_workloads::pod_readiness::concerns(pod))
                    .take(1);
                readiness.push_all(concerned.map(|pod| ObjectKey::of(&**pod)));
            }),
            revision: Box::new(move |delta| {
                let owner = delta.latest().and_then(|revision| {
                    let name = revision.owner_name.as_ref()?;
                    Some(ObjectKey::new(revision.namespace(), name.clone()))
                });
                of_revision.push_all(owner);
            }),
        }
    }

    /// Runs until told to stop; what is under way ends in order.
    async fn run(&self, stop: watch::Receiver<bool>) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.sets.clone().run(shutdown::stopped(stop.clone())));
        tasks.spawn(self.readiness.clone().run(shutdown::stopped(stop)));
        tasks.join_all().await;
    }
}
