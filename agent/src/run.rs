//! The loop of the process: events in, effects out.
//!
//! Each effect is a task of its own. Its end is the answer, and dropping it cancels its call. A task that panics
//! ends the process, because an answer would be missing for ever. A runtime that is away ends nothing: it is looked
//! for again, `/healthz` names it, and an event on the NodeImage says so.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kruise_agent_core::{Agent, Event};
use kruise_api::names::agent::{CONTAINER_META, CONTAINER_RECREATE, IMAGE_PULLER, POD_PROBE};
use kruise_api::names::nodeimage::AGENT;
use kruise_runtime::client::{self, Source};
use kruise_runtime::shutdown::stopped;
use kruise_runtime::{Client, Clock};
use kruise_server::listen::Limits;
use kruise_server::plain::{Page, PlainServer};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::credentials::Credentials;
use crate::effects::secrets::Secrets;
use crate::effects::{Api, Executor, Probes, Requests};
use crate::events::Events;
use crate::health::Checks;
use crate::host::{Host, PodNetwork};
use crate::jitter::jitter;
use crate::metrics::Metrics;
use crate::runtime::Sockets;
use crate::served::Versions;
use crate::watches::Watching;
use crate::{Error, Settings};

/// Time limit of requests other than watches.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request for metrics or health may take when the process ends.
const DRAIN: Duration = Duration::from_secs(1);
/// Connections for metrics and health: a Prometheus or two, and the kubelet.
const CONNECTIONS: usize = 32;

/// Runs the agent until `stop` turns true or its sender is dropped. Metrics and health are served at `listener`, if
/// there is one. Ends within four seconds.
///
/// # Errors
/// [`Error::Connect`] before anything has begun; [`Error::Panicked`].
pub async fn run(
    settings: Settings,
    listener: Option<TcpListener>,
    stop: watch::Receiver<bool>,
) -> Result<(), Error> {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let host = Host {
        client: connect(&settings, &metrics).await?,
        node: Arc::new(Sockets(settings.sockets.clone())),
        pods: PodNetwork::Present,
        jitter: Arc::new(jitter),
    };
    let checks = Arc::new(Checks::new(settings.watches_pods, settings.runs_probes));
    let mut pages = JoinSet::new();
    if let Some(listener) = listener {
        pages.spawn(server(registry, Arc::clone(&checks)).serve(listener, stop.clone()));
    }
    let result = work(&settings, host, metrics, checks, stop).await;
    // It ends by the same signal. What is left then ends with this function.
    let _late = timeout(DRAIN, pages.join_next()).await;
    result
}

/// Runs an agent on a host, without metrics and health, until `stop` turns true or its sender is dropped. Sockets,
/// kubeconfig and pace of the settings are for [`run`]. Dropping the future ends it as the end of its process does.
///
/// # Errors
/// [`Error::Panicked`].
pub async fn process(settings: Settings, host: Host, stop: watch::Receiver<bool>) -> Result<(), Error> {
    let metrics = Metrics::register(&mut Registry::default());
    let checks = Arc::new(Checks::new(settings.watches_pods, settings.runs_probes));
    work(&settings, host, metrics, checks, stop).await
}

async fn work(
    settings: &Settings,
    host: Host,
    metrics: Metrics,
    checks: Arc<Checks>,
    stop: watch::Receiver<bool>,
) -> Result<(), Error> {
    let client = host.client;
    let named = |component: &str| client.named(&format!("{AGENT}/{component}"));
    // Events have a pace of their own: many of them must not hold up a status.
    let images = named(IMAGE_PULLER);
    let mut watches = JoinSet::new();
    let (news, received) = mpsc::unbounded_channel();
    let served = Versions::default();
    let watching = |client| Watching {
        client,
        node: settings.node.clone(),
        checks: Arc::clone(&checks),
        news: news.clone(),
        jitter: Arc::clone(&host.jitter),
        stop: stop.clone(),
    };
    watches.spawn(watching(images.clone()).node_image(served.clone()));
    if let Some(pods) = &checks.pods {
        watches.spawn(watching(client.clone()).pods(pods.clone()));
    }
    let requests = Requests {
        client: named(CONTAINER_RECREATE),
        served: Versions::default(),
    };
    watches.spawn(watching(requests.client.clone()).requests(requests.served.clone()));
    let probes = Probes {
        client: named(POD_PROBE),
        served: Versions::default(),
    };
    watches.spawn(watching(probes.client.clone()).probes(probes.served.clone()));
    let executor = Executor::new(
        (host.node, host.pods),
        Secrets::new(images.clone()),
        Credentials::new(settings),
        Api {
            images,
            pods: named(CONTAINER_META),
            served: served.clone(),
            requests,
            probes,
        },
        Events::spawn(named, &settings.node, served),
        checks,
        metrics,
    );
    let mut process = Process {
        agent: Agent::new(settings.config()),
        executor,
        received,
        client,
    };
    tracing::info!(node = settings.node, "the agent has started");
    let result = process.drive(stop).await;
    watches.shutdown().await;
    process.executor.end().await;
    result
}

async fn connect(settings: &Settings, metrics: &Metrics) -> Result<Client, Error> {
    let source = settings.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let settings = client::Settings {
        user_agent: AGENT.to_owned(),
        timeout: REQUEST_TIMEOUT,
        rate: Some(settings.pace),
        host: String::new(),
        observer: Some(Arc::new(metrics.requests.clone())),
        clock: Clock::SYSTEM,
    };
    Ok(client::connect(&source, settings).await?)
}

fn server(registry: Registry, checks: Arc<Checks>) -> PlainServer {
    let render = move || {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _infallible = encode(&mut text, &registry);
        text
    };
    let pages = [
        ("/metrics", Page::Metrics(Arc::new(render))),
        ("/healthz", Page::Verdict(Arc::new(move || checks.judge()))),
    ];
    PlainServer {
        pages: BTreeMap::from(pages.map(|(path, page)| (path.to_owned(), page))),
        limits: Limits {
            connections: CONNECTIONS,
            drain: DRAIN,
            ..Limits::default()
        },
        ..PlainServer::default()
    }
}

struct Process {
    agent: Agent,
    executor: Executor,
    /// Changes of objects.
    received: mpsc::UnboundedReceiver<Event>,
    /// Whose clock counts.
    client: Client,
}

impl Process {
    async fn drive(&mut self, stop: watch::Receiver<bool>) -> Result<(), Error> {
        let mut stop = pin!(stopped(stop));
        self.handle(Event::Started);
        loop {
            let (agent, client) = (&self.agent, &self.client);
            let event = tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                answer = self.executor.next() => answer.map_err(Error::Panicked)?,
                Some(event) = self.received.recv() => event,
                // It is looked up when nothing else is there, and not for each of many answers that came together.
                () = timer(agent, client) => Event::Timer,
            };
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        for effect in self.agent.handle(event, self.client.now()) {
            self.executor.carry_out(effect);
        }
    }
}

/// Resolves when something is due, or never. Polled for the first time, it looks when that is.
async fn timer(agent: &Agent, client: &Client) {
    let Some(due) = agent.next_timer() else {
        return pending().await;
    };
    let wait = due.duration_since(client.now());
    sleep(Duration::try_from(wait).unwrap_or_default()).await;
}
