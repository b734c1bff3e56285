//! A manager on a machine: signals, sockets and the system's clock around its [process](super::process()).

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use kruise_runtime::{
    Client, Clock,
    client::{self, Source},
    lease,
    metrics::Metrics,
    shutdown,
};
use prometheus_client::registry::Registry;

use super::{
    caches,
    config::Config,
    endpoints,
    process::{Host, process},
};

/// Time a request other than a watch may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs until a signal, or until something fails that a restart must mend.
pub async fn run(config: Config) -> anyhow::Result<()> {
    let stop = shutdown::on_signal().context("cannot listen for signals")?;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let client = connect(&config, &metrics).await?;
    let host = Host {
        client: client.clone(),
        metrics,
        identity: lease::identity(),
        jitter: Arc::new(caches::jitter),
        stop,
    };
    let open = |routes, closing| endpoints::start(&config, client, routes, registry, closing);
    process(&config, host, open).await
}

async fn connect(config: &Config, metrics: &Metrics) -> anyhow::Result<Client> {
    let source = config.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let settings = client::Settings {
        user_agent: "kruise-manager".into(),
        timeout: REQUEST_TIMEOUT,
        rate: config.pace.map(|(qps, burst)| (f64::from(qps), burst)),
        host: String::new(),
        observer: Some(Arc::new(metrics.clone())),
        clock: Clock::SYSTEM,
    };
    Ok(client::connect(&source, settings).await?)
}
