//! What every replica serves: webhooks over TLS, probes and metrics.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::Arc,
};

use anyhow::bail;
use kruise_api::definition::Kind;
use kruise_runtime::Client;
use kruise_server::{
    cert_dir::CertDir,
    changes::Changes,
    configuration::Endpoint,
    health::Check,
    plain::PlainServer,
    renewal,
    tls::Tls,
    webhook::{self, WebhookServer},
    webhook_controller::{Phase, Progress, Settings, Source, WebhookController},
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::JoinSet,
};

use crate::controllers::webhook_caches::conditional_webhook;

use super::{
    config::Config,
    process::{MatchConditions, Routes},
    registrar::Registrar,
    registration::agent,
    sockets::Sockets,
    watched_objects::report_changes,
};

/// The webhooks to serve.
pub(super) struct Webhooks {
    pub(super) routes: Routes,
    pub(super) match_conditions: MatchConditions,
}

/// Starts all servers. Returns once the webhooks are registered and served.
pub(super) async fn start(
    config: &Config,
    client: &Client,
    webhooks: Webhooks,
    mut registry: Registry,
    sockets: Sockets,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<JoinSet<()>> {
    let tls = Arc::new(Tls::default());
    let progress = Progress::default();
    let server = Arc::new(WebhookServer {
        routes: webhooks.routes,
        ..WebhookServer::default()
    });
    tls.register(&mut registry);
    progress.register(&mut registry);
    server.metrics.register(&mut registry);

    let mut tasks = JoinSet::new();
    let port = config.webhook.port;
    let probes = PlainServer::health(vec![Check::ping()], vec![Check::webhook_ready(tls.clone(), port)]);
    plain(&mut tasks, sockets.health, probes, &stop);
    let metrics = PlainServer::metrics(Arc::new(move || {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }));
    plain(&mut tasks, sockets.metrics, metrics, &stop);
    tasks.spawn(webhook::serve(
        sockets.webhooks,
        tls.clone(),
        server.clone(),
        stop.clone(),
    ));
    let (first, succeeded) = oneshot::channel();
    let (named, changes) = (client.named(&agent("webhook-controller")), Changes::default());
    let settings = settings(config, &server, webhooks.match_conditions);
    // With a rate limit of their own.
    let of_watches = client.named(&agent("webhook-controller"));
    report_changes(&mut tasks, &of_watches, &settings, &changes, &stop);
    let webhook_controller = WebhookController {
        api: Registrar(named),
        settings,
        tls,
        changes,
        jitter: jitter(),
        progress: progress.clone(),
    };
    tasks.spawn(webhook_controller.run(stop, first));
    let limit = config.webhook.initialize_timeout;
    match tokio::time::timeout(limit, succeeded).await {
        // The webhook controller ends without success only when the manager stops.
        Ok(Ok(()) | Err(_)) => Ok(tasks),
        Err(_) => bail!(
            "failed to start webhook controller for waiting more than {}s: {}",
            limit.as_secs(),
            progress
                .last_failure()
                .unwrap_or_else(|| "the API server is slow; see --webhook-initialize-timeout".into())
        ),
    }
}

fn settings(config: &Config, server: &Arc<WebhookServer>, match_conditions: MatchConditions) -> Settings {
    use kruise_admission::manifests::{MUTATING, VALIDATING};
    let webhook = &config.webhook;
    let endpoint = match &webhook.host {
        Some(host) => Endpoint::Url {
            host: host.clone(),
            port: webhook.port,
        },
        None => Endpoint::Service {
            namespace: webhook.namespace.clone(),
            name: webhook.service.clone(),
        },
    };
    let source = if config.gates.on("EnableExternalCerts") {
        Source::External
    } else if webhook.writer == "fs" {
        Source::Directory
    } else {
        Source::Secret
    };
    let server = server.clone();
    Settings {
        namespace: webhook.namespace.clone(),
        secret: webhook.secret.clone(),
        configurations: vec![
            (Phase::Mutating, MUTATING.into()),
            (Phase::Validating, VALIDATING.into()),
        ],
        crds: kruise_api::kinds::ALL.into_iter().map(Kind::name).collect(),
        endpoint,
        lead: renewal::lead_from_text(&webhook.renew_before),
        source,
        cert_dir: CertDir::new(&webhook.cert_dir),
        served: Arc::new(move |path: &str| server.routes.contains_key(path)),
        conditional: Some((conditional_webhook(), match_conditions)),
    }
}

/// A random number to spread retries. The standard library seeds each hasher state with entropy, so that no crate for
/// randomness is needed.
pub(super) fn jitter() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn plain(
    tasks: &mut JoinSet<()>,
    listener: Option<TcpListener>,
    server: PlainServer,
    stop: &watch::Receiver<bool>,
) {
    if let Some(listener) = listener {
        tasks.spawn(server.serve(listener, stop.clone()));
    }
}
