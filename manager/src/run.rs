//! Runs the manager's [process](super::process()) with sockets and the system's clock.

use std::{future::pending, pin::pin, sync::Arc, time::Duration};

use anyhow::bail;
use futures::future::join_all;
use kruise_api::definition::Kind;
use kruise_api::path::DEFINITIONS;
use kruise_frame::{config::Config, jitter::jitter, profile::Profile, registration::agent};
use kruise_kinds as controllers;
use kruise_plan_kit::ResourceId;

use kruise_runtime::{
    Client, Clock, Served,
    client::{self, Source},
    discovery, lease,
    metrics::Metrics,
    shutdown,
};
use prometheus_client::registry::Registry;
use tokio::{
    sync::{Notify, oneshot, watch},
    task::JoinSet,
};

use super::{
    endpoints::{self, Phases, Webhooks},
    process::{Host, discover, lease_settings, process},
    rehearsal::Rehearsal,
    sockets::Sockets,
    verbosity,
    watched_objects::on_change,
};

/// Pauses between requests for what is served, after a definition has changed.
const REDISCOVERY: [Duration; 6] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// Time limit of requests other than watches.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The leader ends so long after a definition has appeared: longer than it takes other replicas to end and to start
/// again.
const LEADER_PAUSE: Duration = Duration::from_secs(45);

/// The longest time from the signal to the end: the last writes of controllers, the delay in which clients move,
/// the reviews in flight, and the last events.
pub fn longest_end(config: &Config) -> Duration {
    REQUEST_TIMEOUT + config.shutdown_delay + super::process::DRAIN + super::process::FLUSH
}

/// What a manager receives from a program that embeds it.
#[derive(Debug)]
pub struct Embedding {
    /// The sockets to listen on, instead of those of the configuration.
    pub sockets: Sockets,
    /// Receives a message once webhooks are registered and caches are synced.
    pub ready: oneshot::Sender<()>,
}

/// Runs until `stop` turns true, or until a failure that only a restart repairs.
pub async fn run(
    config: Config,
    embedding: Option<Embedding>,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let rehearsal = config.dry_run.then(Rehearsal::new);
    run_with(config, embedding, rehearsal, stop).await
}

/// As [`run`]. With a rehearsal nothing is written.
pub(super) async fn run_with(
    config: Config,
    embedding: Option<Embedding>,
    rehearsal: Option<Arc<Rehearsal>>,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let is_dry = rehearsal.is_some();
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, &super::metrics());
    let client = connect(&config, &metrics).await?;
    let (sockets, is_up) = embedding.map(|given| (given.sockets, given.ready)).unzip();
    let (ready, is_ready) = oneshot::channel();
    let (synced, caches_synced) = watch::channel(false);
    let served = discover(&config, &client, is_dry).await?;
    let (end, ending) = watch::channel(false);
    // Ends with this function.
    let mut log = JoinSet::new();
    log.spawn({
        let (config, client, stop) = (config.clone(), client.clone(), ending.clone());
        async move { verbosity::follow(&config, &client, stop).await }
    });
    let identity = lease::identity();
    let host = Host {
        client: client.clone(),
        served: Some(served.clone()),
        metrics,
        identity: identity.clone(),
        jitter: Arc::new(jitter),
        ready: Some(ready),
        dry_run: rehearsal.clone().map(|rehearsal| rehearsal as _),
        rehearsal,
        stop: ending.clone(),
    };
    let open = async |routes, match_conditions, closing| {
        let sockets = match sockets {
            Some(open) => open,
            None => Sockets::bind(&config)?,
        };
        let webhooks = Webhooks {
            routes,
            match_conditions,
        };
        let phases = Phases {
            synced: caches_synced,
            announced: ending,
            closing,
        };
        endpoints::start(&config, &client, webhooks, registry, sockets, phases).await
    };
    tokio::spawn(async move {
        // An error means that the manager ends before.
        if is_ready.await.is_ok() {
            synced.send_replace(true);
            if let Some(is_up) = is_up {
                // The receiver may be dropped.
                let _ = is_up.send(());
            }
        }
    });
    let mut running = pin!(process(&config, host, open));
    let appeared = tokio::select! {
        biased;
        ended = &mut running => return ended,
        () = shutdown::stopped(stop) => None,
        kind = async {
            let kind = definition_appears(&client, &config.profile, &served).await;
            let lease = lease_settings(&config, &identity).filter(|_| !is_dry);
            wait_for_turn(&client, lease.as_ref()).await;
            kind
        } => Some(kind),
    };
    // It ends in order either way.
    end.send_replace(true);
    running.await?;
    match appeared {
        None => Ok(()),
        Some(kind) => bail!("{kind} is served now: the manager ends, and acts on it from its next start on"),
    }
}

/// Returns a kind that a controller acts on and that was not served, once it is; never if all of them are.
///
/// A new definition is served a moment after it is written, so that the server is asked several times.
async fn definition_appears(client: &Client, profile: &Profile, served: &Served) -> String {
    let is_missing = |kind: &&Kind| served.version(ResourceId::of(kind)).is_none();
    let kinds = controllers::reconciled(profile).into_iter();
    let missing: Vec<&'static Kind> = kinds.filter(is_missing).collect();
    if missing.is_empty() {
        return pending().await;
    }
    let changed = Notify::new();
    let (_open, stop) = watch::channel(false);
    let client = &client.named(&agent("webhook-controller"));
    let names: Vec<String> = missing.iter().map(|kind| kind.name()).collect();
    let watches = names
        .iter()
        .map(|name| on_change(client, DEFINITIONS, name, stop.clone(), || changed.notify_one()));
    let appears = async {
        loop {
            changed.notified().await;
            for pause in REDISCOVERY {
                if let Ok(now) = discovery::discover(client, &missing, &missing).await
                    && let Some(kind) = missing
                        .iter()
                        .find(|kind| now.version(ResourceId::of(kind)).is_some())
                {
                    return kind.name();
                }
                tokio::time::sleep(pause).await;
            }
        }
    };
    tokio::select! {
        biased;
        kind = appears => kind,
        // Watches end only with their stop signal.
        _ = join_all(watches) => pending().await,
    }
}

/// Waits until this replica may end because a definition has appeared. All replicas see that at once: those that do
/// not lead end first, and the leader when they are back, so that webhooks are served all the time.
async fn wait_for_turn(client: &Client, lease: Option<&lease::Settings>) {
    let leads = match lease {
        Some(lease) => {
            let found = lease::find(&client.named(&agent("leader-election")), lease).await;
            found.is_ok_and(|found| found.is_held_by(&lease.identity))
        }
        None => true,
    };
    let pause = if leads {
        LEADER_PAUSE
    } else {
        Duration::from_millis(jitter() % 5_000)
    };
    tokio::time::sleep(pause).await;
}

async fn connect(config: &Config, metrics: &Metrics) -> anyhow::Result<Client> {
    let source = config.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let settings = client::Settings {
        user_agent: kruise_api::names::MANAGER.into(),
        timeout: REQUEST_TIMEOUT,
        rate: config.pace.map(|(qps, burst)| (f64::from(qps), burst)),
        host: String::new(),
        observer: Some(Arc::new(metrics.clone())),
        clock: Clock::SYSTEM,
    };
    Ok(client::connect(&source, settings).await?)
}
