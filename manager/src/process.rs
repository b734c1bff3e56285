//! Starts and stops the manager's tasks. Listeners are passed in, so that tests run it without sockets.
//!
//! Client, clock, randomness and the stop signal are passed in as [`Host`]. A simulation runs the same process with
//! virtual time and seeded randomness.

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use anyhow::bail;
use futures::{FutureExt as _, future::join_all};
use kruise_admission::{
    manifests::{MUTATING, VALIDATING},
    table::Subject,
};
use kruise_frame::{
    caches::{NODES, PODS},
    config::Config,
    gates::{BUDGET_DELETIONS, BUDGET_UPDATES, DELETION_PROTECTION},
    leader::LeaderSettings,
    registration::{Built, Parts, agent, build_all, find_workloads, server_facts},
    workloads::Workloads,
};
use kruise_kinds::{
    self as controllers, WebhookCaches,
    charges::{Charges, Writer},
    refusals::{self, Log, Refusals},
    webhook_caches::{ReviewCache, conditional_webhook, webhook_of_evictions},
};
use kruise_plan_kit::EventNote;
use kruise_plan_kit::injected::is_injected;
use kruise_runtime::{
    Client, Served,
    caches::{Caches, Following, Jitter, NotSynced, Watches},
    discovery,
    events::{EventSink, ObjectRef},
    freshness::{Followed, catch_up},
    lease::{self, Ending, Found},
    metrics::{Metrics, PodMetrics},
    shutdown,
    worker::DryRun,
};
use kruise_server::{
    webhook::Handler,
    webhook_controller::{Conditional, Phase},
};
use tokio::{
    sync::{oneshot, watch},
    task::{JoinError, JoinSet},
};

use super::{
    admission, elsewhere, narrow, reasons,
    rehearsal::Rehearsal,
    reviews::{Effects, Reviews},
    widening::Widener,
};

/// Time limit for webhook requests in flight after the listeners are closed, and for closing the connections.
pub(super) const DRAIN: Duration = Duration::from_secs(35);

/// Component of events about webhook configurations.
const WEBHOOK_CONTROLLER: &str = "webhook-controller";

/// Time limit for writing the last events.
pub(super) const FLUSH: Duration = Duration::from_secs(2);

/// The environment of a process.
pub struct Host {
    /// Client of the API server, with the clock.
    pub client: Client,
    /// Which versions the cluster serves; `None` if the process is to find out.
    pub served: Option<Served>,
    /// Metrics.
    pub metrics: Metrics,
    /// Unique name of the process in the leader lease.
    pub identity: String,
    /// Uniform random numbers.
    pub jitter: Jitter,
    /// Receives a message once the listeners are open and the caches are synced.
    pub ready: Option<oneshot::Sender<()>>,
    /// Receives the plans of a process that writes nothing, takes no lease and serves no webhooks.
    pub dry_run: Option<Arc<dyn DryRun>>,
    /// Compares the plans of such a process with what becomes of pods.
    pub rehearsal: Option<Arc<Rehearsal>>,
    /// Turns true when the process is to end.
    pub stop: watch::Receiver<bool>,
}

/// Handlers by webhook path.
pub type Routes = BTreeMap<String, Handler>;

/// The webhooks whose match conditions follow objects: the latest conditions that the leader derived.
pub type MatchConditions = Vec<Conditional>;

/// Runs until [`Host::stop`] turns true, or until a failure that only a restart repairs.
///
/// `open` opens the listeners: it receives the webhook handlers, the match conditions, and a receiver that turns
/// true when the listeners are to close. It returns the tasks that serve them, once API servers can reach them.
pub async fn process<Opening>(
    config: &Config,
    mut host: Host,
    open: impl FnOnce(Routes, MatchConditions, watch::Receiver<bool>) -> Opening + Send,
) -> anyhow::Result<()>
where
    Opening: Future<Output = anyhow::Result<JoinSet<()>>> + Send,
{
    let ready = host.ready.take();
    let served = match host.served.take() {
        Some(served) => Arc::new(served),
        None => Arc::new(discover(config, &host.client, host.dry_run.is_some()).await?),
    };
    let (client, metrics) = (&host.client, &host.metrics);
    log_controllers(config, &served);
    let dry_run = host.dry_run.clone();
    let lease = lease_settings(config, &host.identity).filter(|_| dry_run.is_none());
    // The lease is read before the first lists. If it has no holder, and is unchanged when this process acquires it, no
    // other leader wrote after the lists, and the caches need not catch up.
    let before = async {
        let client = host.client.named(&agent("leader-election"));
        lease::find(&client, lease.as_ref()?).await.ok()
    };
    let server = server_facts(
        &config.gates,
        controllers::ALL,
        client,
        &served,
        config.namespace.as_deref(),
    );
    let (server, before) = tokio::join!(server, before);
    let server = server?;
    let mut caches = Caches::default();
    let webhook_caches = WebhookCaches::new(&mut caches, &served, &controllers::reviews::options(config));
    let workloads = workloads(config, &mut caches, &served, client);
    let parts = Parts {
        workloads: &workloads,
        config,
        served: &served,
        server: &server,
        metrics,
        client,
        dry_run: dry_run.as_ref(),
    };
    let mut built = build_all(parts, &mut caches, &controllers::of(&config.profile));
    if let Some(rehearsal) = &host.rehearsal {
        rehearsal.attach(&built, &mut caches);
    }
    let events = beside_controllers(&mut built, client, &webhook_caches, &metrics.pods);
    let written = join_all(std::mem::take(&mut built.events));
    // Listing objects of our kinds may need the conversion webhook, so they are listed once the listeners are open.
    // All other resources are listed meanwhile. The listeners close after the controllers have ended, because pods
    // that the last plans create pass the manager's own webhook, and before the watches, because reviews read the
    // caches.
    let (close, closing) = watch::channel(false);
    let (_end_watches, watching) = watch::channel(false);
    // In a dry run, another manager converts.
    let (opened, convertible) = watch::channel(dry_run.is_some());
    let of_webhooks = client.named(&agent("webhook"));
    let routes = dry_run.is_none().then(|| {
        let cache = review_cache(config, &webhook_caches, &workloads, &mut caches);
        let refusals = (events, host.jitter.clone());
        routes(config, &of_webhooks, cache, (metrics, &served), refusals)
    });
    let opening = async {
        let Some(routes) = routes else {
            return Ok(JoinSet::new());
        };
        let mut endpoints = open(routes, webhook_caches.conditional_webhooks(), closing.clone()).await?;
        opened.send_replace(true);
        narrow::warn(&of_webhooks, &config.gates).await;
        let (caches, jitter) = (webhook_caches.clone(), host.jitter.clone());
        endpoints.spawn(async move {
            elsewhere::follow_widenings(&of_webhooks, &caches, jitter, closing).await;
        });
        anyhow::Ok(endpoints)
    };
    let following = following(config, &host, &served, watching, convertible);
    // Boxed, as together they are large.
    let (opening, starting) = (Box::pin(opening), Box::pin(caches.start(&following)));
    let (mut endpoints, started) = open_and_list(opening, starting, &close, &host.stop).await?;
    let watches = match started {
        Some(Ok(watches)) => watches,
        not_started => {
            close.send_replace(true);
            drain(config, &mut endpoints).await;
            return not_started.map_or(Ok(()), |failed| failed.map(drop).map_err(Into::into));
        }
    };
    // The receiver may be dropped.
    let _ = ready.map(|ready| ready.send(()));
    let Watches {
        tasks: mut watches,
        followed,
    } = watches;
    if let Some(dry_run) = &dry_run {
        dry_run.begins(built.controllers.len());
    }
    let leading = lead(&host, &built, lease, before, &followed);
    let result = tokio::select! {
        biased;
        result = leading => result,
        // A manager with a stale cache or a closed listener looks healthy to probes, so it must restart.
        Some(ended) = watches.join_next() => ended_early("a watch", &ended),
        Some(ended) = endpoints.join_next() => ended_early("an endpoint", &ended),
    };
    close.send_replace(true);
    drain(config, &mut endpoints).await;
    // Change handlers in the caches hold the controllers, which hold the event senders. Once all are dropped, the event
    // tasks end after the last event.
    drop((watches, built, caches));
    let _ = tokio::time::timeout(FLUSH, written).await;
    result
}

/// Opens the listeners and requests the first lists at the same time. Without lists if the manager is to end first; the
/// listeners are then closing. They are also closing if a first list fails.
async fn open_and_list(
    opening: impl Future<Output = anyhow::Result<JoinSet<()>>>,
    starting: impl Future<Output = Result<Watches, NotSynced>>,
    close: &watch::Sender<bool>,
    stop: &watch::Receiver<bool>,
) -> anyhow::Result<(JoinSet<()>, Option<Result<Watches, NotSynced>>)> {
    let (mut opening, mut starting) = (pin!(opening), pin!(starting));
    let mut started = None;
    let endpoints = loop {
        tokio::select! {
            biased;
            opened = &mut opening => break opened?,
            () = shutdown::stopped(stop.clone()) => {
                close.send_replace(true);
                return Ok((opening.await?, None));
            }
            ended = &mut starting, if started.is_none() => {
                if ended.is_err() {
                    close.send_replace(true);
                    return Ok((opening.await?, Some(ended)));
                }
                started = Some(ended);
            }
        }
    };
    if started.is_none() {
        tokio::select! {
            biased;
            ended = &mut starting => started = Some(ended),
            () = shutdown::stopped(stop.clone()) => {}
        }
    }
    Ok((endpoints, started))
}

/// Adds what reviews need beside the controllers: match conditions, which the leader derives, and events.
fn beside_controllers(
    built: &mut Built,
    client: &Client,
    caches: &WebhookCaches,
    metrics: &PodMetrics,
) -> EventSink {
    let mut sink = |component: &'static str| {
        let (events, written) = EventSink::spawn(client.named(&agent(component)), component);
        built.events.push(written);
        events
    };
    let (events, of_conditions) = (sink(refusals::COMPONENT), sink(WEBHOOK_CONTROLLER));
    let (caches, metrics) = (caches.clone(), metrics.clone());
    built.leader_tasks.push(Box::new(move |stop| {
        let (metrics, events) = (metrics.clone(), of_conditions.clone());
        let open = move |webhook, phase, is_open| {
            metrics.called_for_all(webhook, is_open);
            if is_open {
                let (configuration, note) = called_for_all(webhook, phase);
                events.emit(configuration, note);
            }
        };
        caches.clone().derive_match_conditions(open, stop).boxed()
    }));
    events
}

/// The event about a webhook that is called for the requests of the whole cluster.
fn called_for_all(webhook: &str, phase: Phase) -> (ObjectRef, EventNote) {
    let (kind, name, of) = match phase {
        Phase::Mutating => (
            "MutatingWebhookConfiguration",
            MUTATING,
            "all new pods: what is for new pods selects any of them, or there is too much of it; select namespaces or labels",
        ),
        Phase::Validating => (
            "ValidatingWebhookConfiguration",
            VALIDATING,
            "all evictions: what is asked about them is in too many namespaces to name them",
        ),
    };
    let configuration = ObjectRef {
        api_version: "admissionregistration.k8s.io/v1".to_owned(),
        kind: kind.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
        uid: String::new(),
        resource_version: String::new(),
        field_path: String::new(),
    };
    let message = format!("webhook {webhook} is called for {of}");
    (configuration, EventNote::new(&reasons::CALLED_FOR_ALL, message))
}

/// How the caches follow the API server.
fn following<'f>(
    config: &'f Config,
    host: &'f Host,
    served: &'f Served,
    stop: watch::Receiver<bool>,
    convertible: watch::Receiver<bool>,
) -> Following<'f> {
    Following {
        client: &host.client,
        served,
        namespace: config.namespace.as_deref(),
        own_namespace: &config.webhook.namespace,
        patience: config.cache_sync_timeout,
        jitter: host.jitter.clone(),
        convertible,
        stop,
    }
}

/// Waits until the endpoints have ended, which serve until clients have moved to other managers.
async fn drain(config: &Config, endpoints: &mut JoinSet<()>) {
    let limit = config.shutdown_delay + DRAIN;
    let ended = async { while endpoints.join_next().await.is_some() {} };
    if tokio::time::timeout(limit, ended).await.is_err() {
        tracing::warn!("listeners are still open after {limit:?}");
    }
}

/// The caches that reviews read.
fn review_cache(
    config: &Config,
    webhook_caches: &WebhookCaches,
    workloads: &Workloads,
    caches: &mut Caches,
) -> ReviewCache {
    ReviewCache {
        workloads: Some(workloads.clone()),
        webhook_caches: webhook_caches.clone(),
        pods: caches.informer(&PODS),
        nodes: caches.informer(&NODES),
        namespace: config.webhook.namespace.clone(),
    }
}

/// The handlers of the webhooks. Match conditions are widened unless they are not the manager's to write.
fn routes(
    config: &Config,
    client: &Client,
    cache: ReviewCache,
    (metrics, served): (&Metrics, &Arc<Served>),
    (events, jitter): (EventSink, Jitter),
) -> Routes {
    let pods_are_reviewed = config.gates.on("PodWebhook");
    let writes_configurations = !config.gates.on("EnableExternalCerts");
    let widener = (pods_are_reviewed && writes_configurations).then(|| {
        let webhooks = vec![conditional_webhook(), webhook_of_evictions()];
        Widener::new(client.clone(), webhooks)
    });
    let options = controllers::reviews::options(config);
    let guards = [DELETION_PROTECTION, BUDGET_DELETIONS, BUDGET_UPDATES];
    let log = guards
        .iter()
        .any(|gate| config.gates.on(gate))
        .then(|| Log::open(&config.protection_log));
    let (budgets, spreads) = (
        cache.webhook_caches.budgets.clone(),
        cache.webhook_caches.spreads.clone(),
    );
    let are_disruptions_reviewed = pods_are_reviewed && (budgets.are_served() || spreads.are_served());
    let effects = Effects {
        widener,
        charges: Charges {
            budgets: Writer::new(budgets, client.clone(), served.clone(), jitter.clone()),
            spreads: Writer::new(spreads, client.clone(), served.clone(), jitter),
        },
        refusals: Refusals::new(metrics, log).with_events(events),
    };
    let reviews = Reviews::new(options, cache, client.clone(), metrics.pods.clone(), effects);
    let profile = &config.profile;
    admission::routes(reviews, |subject| match subject {
        Subject::Pods => pods_are_reviewed,
        Subject::Disruptions(_) => are_disruptions_reviewed,
        Subject::Kind(webhooks) => profile.includes(webhooks.kind),
        _ => true,
    })
}

/// Logs which controllers run, which are off because the cluster does not serve their kind, and which kinds have no
/// controller.
fn log_controllers(config: &Config, served: &Served) {
    let mut running = Vec::new();
    let registrations = controllers::of(&config.profile).into_iter();
    for registration in registrations.filter(|one| one.is_on(&config.gates)) {
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
    tracing::info!("controllers: {}", running.join(", "));
}

/// The finder of workloads. Its caches are followed if one of the controllers needs them.
fn workloads(config: &Config, caches: &mut Caches, served: &Arc<Served>, client: &Client) -> Workloads {
    let is_wanted = find_workloads(&config.gates, served, &controllers::of(&config.profile));
    let (kinds, own_namespace) = (controllers::workloads::cached(), &config.webhook.namespace);
    Workloads::new(kinds, caches, served, is_wanted, client, own_namespace)
}

/// What the cluster serves of the kinds that the manager acts on and serves. A dry run writes none of them.
pub(super) async fn discover(config: &Config, client: &Client, is_dry: bool) -> anyhow::Result<Served> {
    let profile = &config.profile;
    let written = if is_dry {
        Vec::new()
    } else {
        controllers::reconciled(profile)
    };
    let served = discovery::discover(client, controllers::kinds(), &written).await?;
    Ok(served.retain(|resource| profile.includes_resource(resource)))
}

/// The error of a task that ended before the process.
fn ended_early(task: &str, ended: &Result<(), JoinError>) -> anyhow::Result<()> {
    match ended {
        Ok(()) => bail!("{task} ended"),
        Err(error) => bail!("{task} ended: {error}"),
    }
}

/// Runs the controllers while this process is the leader.
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
    // The lease is released only after the controllers have ended.
    let (release, released) = watch::channel(false);
    let client = host.client.named(&agent("leader-election"));
    let mut leading = pin!(lease::lead(&client, lease, metrics, released, move |found| {
        // An error means that the process is ending.
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
    // Releases the lease. An error means that the elector has ended, and that the lease is released or lost.
    let _ = release.send(true);
    ended(leading.await)
}

/// Settings of leader election; `None` to run without.
pub(super) fn lease_settings(config: &Config, identity: &str) -> Option<lease::Settings> {
    let lease = config.lease.clone();
    let lease = lease.filter(|_| !is_injected("TwoLeaders"))?;
    Some(lease::Settings {
        annotations: [LeaderSettings::of(config).annotation(identity)].into(),
        namespace: lease.namespace,
        name: lease.name,
        identity: identity.to_owned(),
        lease_duration: lease.duration,
        renew_deadline: lease.renew_deadline,
        retry_period: lease.retry_period,
    })
}

/// Losing the lease ends the process with an error, so that no plan on its outdated state is executed.
fn ended(ending: Ending) -> anyhow::Result<()> {
    match ending {
        Ending::Stopped => Ok(()),
        Ending::Lost(why) => bail!("the leader lease was lost: {why}"),
    }
}

/// Runs the controllers and the other tasks of the leader until `stop` turns true; plans in execution end in order.
///
/// Each task has a stop channel of its own, and they are closed one after the other. One shared channel would wake its
/// receivers in an order that differs from run to run, and simulations would not be reproducible.
async fn run_all(built: &Built, stop: watch::Receiver<bool>) {
    let mut stops = Vec::new();
    let mut stop_of_task = || {
        let (sender, receiver) = watch::channel(false);
        stops.push(sender);
        receiver
    };
    let mut tasks = JoinSet::new();
    for controller in &built.controllers {
        tasks.spawn(controller.clone().run(stop_of_task()));
    }
    for task in &built.leader_tasks {
        tasks.spawn(task(stop_of_task()));
    }
    let stop_all = async {
        shutdown::stopped(stop).await;
        for stop in &stops {
            stop.send_replace(true);
        }
    };
    tokio::join!(tasks.join_all(), stop_all);
}

#[cfg(test)]
mod tests;
