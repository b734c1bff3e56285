//! Runs the manager's [process](super::process()) with sockets and the system's clock.

use std::{sync::Arc, time::Duration};

use kruise_runtime::{
    Client, Clock,
    client::{self, Source},
    lease,
    metrics::Metrics,
};
use prometheus_client::registry::Registry;
use tokio::sync::{oneshot, watch};

use crate::controllers;

use super::{
    config::Config,
    endpoints::{self, Sockets, Webhooks, jitter},
    process::{Host, process},
};

/// Time limit of requests other than watches.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

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
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, &controllers::metrics());
    let client = connect(&config, &metrics).await?;
    let (sockets, ready) = embedding.map(|given| (given.sockets, given.ready)).unzip();
    let host = Host {
        client: client.clone(),
        metrics,
        identity: lease::identity(),
        jitter: Arc::new(jitter),
        ready,
        stop,
    };
    let open = async |routes, match_conditions, closing| {
        let sockets = match sockets {
            Some(open) => open,
            None => Sockets::bind(&config).await?,
        };
        let webhooks = Webhooks {
            routes,
            match_conditions,
        };
        endpoints::start(&config, &client, webhooks, registry, sockets, closing).await
    };
    process(&config, host, open).await
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
