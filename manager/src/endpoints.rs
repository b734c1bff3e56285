//! What every replica serves: webhooks over TLS, probes and metrics.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use kruise_admission::table::{Webhook, webhooks};
use kruise_api::definition::Kind;
use kruise_frame::{config::Config, jitter::jitter, registration::agent};
use kruise_kinds as controllers;
use kruise_runtime::{Client, shutdown::stopped};
use kruise_server::{
    cert_dir::CertDir,
    changes::Changes,
    configuration::{Call, Endpoint},
    health::Check,
    listen::Limits,
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
    time::{Instant, sleep_until},
};

use super::{
    callers, memory,
    process::{MatchConditions, Routes},
    registrar::Registrar,
    sockets::Sockets,
    watched_objects::report_changes,
};

/// The webhooks to serve.
pub(super) struct Webhooks {
    pub(super) routes: Routes,
    pub(super) match_conditions: MatchConditions,
}

/// Time after the webhooks are registered until a manager is ready without complete caches.
///
/// A manager whose caches are not synced asks most reviews to be tried again, so it is not ready. But if no manager is
/// ready, the API server cannot convert what was stored in an older version, and the first lists fail.
const CACHES_LIMIT: Duration = Duration::from_secs(5);

/// The start and the end of a manager, as its listeners follow them.
pub(super) struct Phases {
    /// Turns true when the caches are synced.
    pub(super) synced: watch::Receiver<bool>,
    /// Turns true when the manager is to end: from then on it is not ready.
    pub(super) announced: watch::Receiver<bool>,
    /// Turns true when nothing of the manager itself needs the listeners any more.
    pub(super) closing: watch::Receiver<bool>,
}

impl Phases {
    /// Reports the end to the readiness check, and closes the listeners when clients have had `delay` to move to other
    /// managers.
    async fn close(
        self,
        delay: impl Fn() -> Duration,
        not_ready: watch::Sender<bool>,
        close: watch::Sender<bool>,
    ) {
        tokio::select! {
            biased;
            () = stopped(self.announced) => {}
            () = stopped(self.closing.clone()) => {}
        }
        not_ready.send_replace(true);
        let closed_at = Instant::now() + delay();
        stopped(self.closing).await;
        sleep_until(closed_at).await;
        close.send_replace(true);
    }
}

/// What requests may take of the memory of the process.
fn limits() -> Limits {
    let wanted = std::env::var("GOMEMLIMIT").unwrap_or_default();
    let Some(memory) = memory::limit(&|path| std::fs::read_to_string(path).ok(), &wanted) else {
        return Limits::default();
    };
    let mebibytes = memory >> 20;
    tracing::info!(
        mebibytes,
        "less than half of the memory limit is for requests to webhooks"
    );
    Limits::within(memory)
}

/// Starts all servers. Returns once the webhooks are registered and served, or the manager is to end.
pub(super) async fn start(
    config: &Config,
    client: &Client,
    webhooks: Webhooks,
    mut registry: Registry,
    sockets: Sockets,
    phases: Phases,
) -> anyhow::Result<JoinSet<()>> {
    let tls = Arc::new(match &config.webhook.client_ca {
        Some(file) => {
            let text =
                std::fs::read(file).with_context(|| format!("--webhook-client-ca={}", file.display()))?;
            Tls::asking_clients(&text).with_context(|| format!("--webhook-client-ca={}", file.display()))?
        }
        None => Tls::default(),
    });
    let progress = Progress::default();
    let server = Arc::new(WebhookServer {
        routes: webhooks.routes,
        limits: limits(),
        ..WebhookServer::default()
    });
    tls.register(&mut registry);
    progress.register(&mut registry);
    server.metrics.register(&mut registry);

    let mut tasks = JoinSet::new();
    let port = config.webhook.port;
    let (not_ready, is_not_ready) = watch::channel(false);
    let (close, closed) = watch::channel(false);
    let (registered, at) = watch::channel(None);
    let probes = PlainServer::health(
        vec![Check::ping()],
        vec![
            Check::webhook_ready(tls.clone(), port),
            caches_synced(phases.synced.clone(), at),
            Check::shutdown(is_not_ready),
        ],
    );
    plain(&mut tasks, sockets.health, probes, &closed);
    let mut metrics = PlainServer::metrics(Arc::new(move || {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }));
    if config.metrics_secure {
        metrics.tls = Some(tls.clone());
        metrics.guard = Some(callers::guard(client.named(&agent("metrics"))));
    }
    plain(&mut tasks, sockets.metrics, metrics, &closed);
    tasks.spawn(webhook::serve(
        sockets.webhooks,
        tls.clone(),
        server.clone(),
        closed,
    ));
    let stop = phases.closing.clone();
    // Nobody calls a manager that has never had a certificate.
    let (delay, of_delay) = (config.shutdown_delay, tls.clone());
    let delay = move || of_delay.pair().map_or(Duration::ZERO, |_| delay);
    tasks.spawn(phases.close(delay, not_ready, close));
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
    tasks.spawn(webhook_controller.run(stop.clone(), first));
    let limit = config.webhook.initialize_timeout;
    let started = async {
        tokio::select! {
            biased;
            // The webhook controller ends without success only when the manager stops.
            _ = succeeded => {}
            () = stopped(stop) => {}
        }
    };
    match tokio::time::timeout(limit, started).await {
        Ok(()) => {
            registered.send_replace(Some(Instant::now()));
            Ok(tasks)
        }
        Err(_) => bail!(
            "failed to start webhook controller for waiting more than {}s: {}",
            limit.as_secs(),
            progress
                .last_failure()
                .unwrap_or_else(|| "the API server is slow; see --webhook-initialize-timeout".into())
        ),
    }
}

/// `caches-synced`: reviews can be decided. Passes without it [`CACHES_LIMIT`] after the webhooks were `registered`.
fn caches_synced(synced: watch::Receiver<bool>, registered: watch::Receiver<Option<Instant>>) -> Check {
    Check::new("caches-synced", move || {
        let is_late = registered.borrow().is_some_and(|at| at.elapsed() >= CACHES_LIMIT);
        let passes = is_late || *synced.borrow();
        std::future::ready(
            passes
                .then_some(())
                .ok_or_else(|| "first lists are not complete".to_owned()),
        )
    })
}

fn settings(config: &Config, server: &Arc<WebhookServer>, match_conditions: MatchConditions) -> Settings {
    use kruise_admission::manifests::{MUTATING, VALIDATING};
    let webhook = &config.webhook;
    let endpoint = match webhook.address.clone() {
        Some((host, port)) => Endpoint::Url { host, port },
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
    let (server, is_needed) = (server.clone(), is_needed(config));
    Settings {
        namespace: webhook.namespace.clone(),
        secret: webhook.secret.clone(),
        configurations: vec![
            (Phase::Mutating, MUTATING.into()),
            (Phase::Validating, VALIDATING.into()),
        ],
        crds: config
            .profile
            .of_kinds(kruise_kinds::kinds())
            .map(Kind::name)
            .collect(),
        endpoint,
        lead: renewal::lead_from_text(&webhook.renew_before),
        source,
        cert_dir: CertDir::new(&webhook.cert_dir),
        served: Arc::new(move |call: &Call<'_>| server.routes.contains_key(call.path) && is_needed(call)),
        conditionals: match_conditions,
    }
}

/// Whether a webhook has something to do with a call. If not, as a gate is off, it is not registered for it, so
/// that nothing depends on it. It is still served, because the configuration may be written by others.
fn is_needed(config: &Config) -> impl Fn(&Call<'_>) -> bool + Send + Sync + use<> {
    let options = controllers::reviews::options(config);
    let by_path: Vec<(String, Webhook)> = webhooks(kruise_kinds::webhooks())
        .map(|webhook| (webhook.path(), webhook))
        .collect();
    move |call| {
        let mut of_path = by_path.iter().filter(|(path, _)| path == call.path);
        of_path.all(|(_, webhook)| webhook.is_needed(call.operation, options))
    }
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
