//! A manager on a machine: sockets and the system's clock around its [process](super::process()).

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

/// Time a request other than a watch may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

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
    let open = async |routes, wishes, closing| {
        let sockets = match sockets {
            Some(open) => open,
            None => Sockets::bind(&config).await?,
        };
        let webhooks = Webhooks { routes, wishes };
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
