//! A manager process but for its doors: the order in which its tasks start and stop.
//!
//! What it needs from where it runs comes in through [`Host`], and the doors (sockets, certificates) are opened by who
//! calls: the same process runs on a machine and in a simulation, where time is virtual and chance has a seed.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::bail;
use kruise_plan_kit::planted::{Bug, is_planted};
use kruise_plan_kit::{ResourceId, inplace::VerticalScaling};
use kruise_plan_workloads::cloneset::Options;
use kruise_runtime::{
    Client, Served, discovery,
    events::EventSink,
    freshness::{Followed, catch_up},
    lease::{self, Ending, Found},
    metrics::Metrics,
    shutdown,
    worker::{Controller, Planner, Settings},
};
use kruise_server::{configuration::Presence, webhook::Handler};
use kube_cache::{Cached, ObjectKey};
use tokio::{
    sync::{oneshot, watch},
    task::{JoinError, JoinSet},
};

use crate::gates::Gates;

use super::{
    admission,
    caches::{Caches, Handlers, Jitter, Watched, Watches},
    cloneset::{self, CloneSets},
    config::{Config, Server},
    launch::{self, Launches},
    pod_readiness::{self, PodReadiness},
    reviews::Reviews,
    sidecars::{SidecarCaches, SidecarHandlers},
    sidecarset::{self, SidecarSets},
};

/// Time for webhook requests under way to be answered.
const DRAIN: Duration = Duration::from_secs(30);

/// Time to write the last events.
const FLUSH: Duration = Duration::from_secs(2);

/// What a process gets from where it runs.
pub struct Host {
    /// The way to the API server, and the time.
    pub client: Client,
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

/// Which pods API servers are to show us for the sake of SidecarSets, as the leader says.
pub type Wishes = watch::Receiver<Presence>;

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
    let (client, metrics) = (&host.client, &host.metrics);
    let clonesets = discovery::cloneset_version(client).await?;
    discovery::check_conversion(client).await?;
    let sidecarsets = discovery::sidecarset_version(client).await?;
    tracing::info!(version = clonesets, "CloneSets are served");
    let mut server = ask(&config.gates, client, clonesets).await?;
    server.pull_jobs = server.pull_jobs && may_pull(config, client, clonesets).await?;
    tracing::warn!(
        "this build runs {}, {}, {} and {}; nothing acts on the other kinds, which are served and stored: {}",
        cloneset::NAME,
        sidecarset::NAME,
        pod_readiness::NAME,
        launch::NAME,
        without_controller()
    );
    let lease = lease_settings(config, &host.identity);
    // Before the first lists: if it is free, and still is as it was when we take it, nobody writes after them.
    let before = match &lease {
        Some(lease) => lease::find(&host.client.named(&agent("leader-election")), lease)
            .await
            .ok(),
        None => None,
    };
    let caches = Caches::new(sidecarsets);
    // Reading a CloneSet may need the conversion webhook, so the doors open before the watches.
    // They also close after everything else: pods that are still being created pass our own webhook.
    let (close, closing) = watch::channel(false);
    let sink = |name: &'static str| EventSink::spawn(client.named(&agent(name)), name);
    let (of_sets, sets_written) = sink(cloneset::NAME);
    let (of_sidecars, sidecars_written) = sink(sidecarset::NAME);
    let (of_pods, pods_written) = sink(launch::NAME);
    let written = async { tokio::join!(sets_written, sidecars_written, pods_written) };
    let events = Events {
        sets: of_sets,
        sidecars: of_sidecars,
        pods: of_pods,
    };
    let options = config.cloneset_options(server);
    let controllers = Controllers::new(config, options, client, clonesets, &caches, metrics, events);
    let started = async {
        let served = if config.dry_run {
            JoinSet::new()
        } else {
            let reviews = Reviews {
                options: admission::options(config),
                caches: caches.sidecars.clone(),
                client: client.named(&agent("webhook")),
                namespace: config.webhook.namespace.clone(),
                metrics: metrics.pods.clone(),
            };
            let routes = admission::routes(reviews, config.gates.on("PodWebhook"), &caches);
            open(routes, caches.sidecars.wishes(), closing.clone()).await?
        };
        let handlers = controllers.handlers();
        let watched = Watched {
            clonesets,
            pull_jobs: options.images_ahead,
        };
        let watches = caches.start(&host, config, watched, handlers, closing).await?;
        anyhow::Ok((served, watches))
    };
    let (mut served, watches) = tokio::select! {
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
    let leading = lead(&host, controllers, lease, before, &followed);
    let result = tokio::select! {
        biased;
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

/// What decisions depend on that the server knows, of which CloneSets have this version on the wire. It is asked only about
/// what a gate wants.
pub(crate) async fn ask(gates: &Gates, client: &Client, clonesets: &str) -> anyhow::Result<Server> {
    let vertical_scaling = if gates.on("InPlaceWorkloadVerticalScaling") {
        VerticalScaling::of_server(&discovery::server_version(client).await?)
    } else {
        VerticalScaling::Off
    };
    let pull_jobs = gates.on("PreDownloadImageForInPlaceUpdate")
        && discovery::serves(client, clonesets, ResourceId::IMAGE_PULL_JOBS.plural).await?;
    Ok(Server {
        vertical_scaling,
        pull_jobs,
    })
}

/// May the manager see the jobs that pull images? Without that right no set stands still: nothing is pulled ahead.
async fn may_pull(config: &Config, client: &Client, version: &str) -> anyhow::Result<bool> {
    let may = discovery::may_list(client, &config.pull_jobs_path(version)).await?;
    if !may {
        tracing::warn!(
            "images are not pulled ahead, though gate PreDownloadImageForInPlaceUpdate is on: the manager may not list \
             ImagePullJobs; `kruise manifests --feature-gates=PreDownloadImageForInPlaceUpdate=true` prints the rights \
             that it needs"
        );
    }
    Ok(may)
}

/// The kinds that nothing of this build acts on.
fn without_controller() -> String {
    let kinds = kruise_api::kinds::ALL.into_iter().map(|kind| kind.kind);
    let others: Vec<&str> = kinds
        .filter(|kind| !["CloneSet", "SidecarSet"].contains(kind))
        .collect();
    others.join(", ")
}

/// Why a task that should run as long as the process ended before it.
fn broken(task: &str, ended: &Result<(), JoinError>) -> anyhow::Result<()> {
    match ended {
        Ok(()) => bail!("{task} ended"),
        Err(error) => bail!("{task} ended: {error}"),
    }
}

fn agent(component: &str) -> String {
    format!("{}/{component}", kruise_api::names::MANAGER)
}

/// Runs the controllers while this process leads.
async fn lead(
    host: &Host,
    controllers: Controllers,
    lease: Option<lease::Settings>,
    before: Option<Found>,
    followed: &[Followed],
) -> anyhow::Result<()> {
    let (metrics, stop) = (&host.metrics, host.stop.clone());
    let Some(lease) = lease else {
        controllers.run(stop).await;
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
            if !before.is_some_and(|before| before.nobody_led_until(&found)) {
                tokio::select! {
                    biased;
                    () = shutdown::stopped(stop.clone()) => return,
                    () = catch_up(&host.client, followed) => {}
                }
            }
            controllers.run(stop).await;
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
    let lease = lease.filter(|_| !config.dry_run && !is_planted(Bug::TwoLeaders))?;
    Some(lease::Settings {
        annotations: [config.decides().annotation(identity)].into(),
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

/// A controller whose owners are objects in namespaces.
fn controller<P: Planner<Key = ObjectKey>>(
    planner: P,
    settings: Settings,
    client: &Client,
    metrics: &Metrics,
) -> Arc<Controller<P>> {
    let client = client.named(&agent(settings.name));
    let observer = metrics.controller(settings.name, settings.workers);
    Controller::new(planner, settings, client, observer, |key| &key.namespace)
}

/// Where the events of each kind go.
struct Events {
    sets: EventSink,
    sidecars: EventSink,
    pods: EventSink,
}

/// The controllers, wired to the caches.
struct Controllers {
    sets: Arc<Controller<CloneSets>>,
    sidecarsets: Arc<Controller<SidecarSets>>,
    readiness: Arc<Controller<PodReadiness>>,
    launches: Arc<Controller<Launches>>,
    sidecars: SidecarCaches,
}

impl Controllers {
    fn new(
        config: &Config,
        options: Options,
        client: &Client,
        clonesets: &'static str,
        caches: &Caches,
        metrics: &Metrics,
        events: Events,
    ) -> Self {
        // SidecarSets that are not served have no controller whose writes this could turn away.
        let versions = [
            (ResourceId::CLONESETS, clonesets),
            (ResourceId::IMAGE_PULL_JOBS, clonesets),
            (
                ResourceId::SIDECARSETS,
                caches.sidecars.version().unwrap_or(clonesets),
            ),
        ];
        let served: Arc<Served> = Arc::new(versions.into_iter().collect());
        let settings = |name, workers| Settings {
            name,
            workers,
            queue: config.retries,
            expectation_timeout: config.expectation_timeout,
            served: served.clone(),
            dry_run: config.dry_run,
        };
        let sets = CloneSets {
            caches: caches.clone(),
            api_version: format!("{}/{clonesets}", kruise_api::names::APPS_GROUP),
            options,
            events: events.sets,
            metrics: metrics.clone(),
        };
        // Where they are not served, there are none to work on.
        let version = caches.sidecars.version().unwrap_or(clonesets);
        let sidecarsets = SidecarSets {
            caches: caches.clone(),
            api_version: format!("{}/{version}", kruise_api::names::APPS_GROUP),
            namespace: config.webhook.namespace.clone(),
            events: events.sidecars,
            metrics: metrics.clone(),
            turns: Mutex::default(),
            injects: config.gates.on("PodWebhook"),
            repairs: Mutex::default(),
        };
        let readiness = PodReadiness {
            caches: caches.clone(),
        };
        let launches = Launches {
            caches: caches.clone(),
            events: events.pods,
        };
        Self {
            sets: controller(
                sets,
                settings(cloneset::NAME, config.cloneset_workers),
                client,
                metrics,
            ),
            sidecarsets: Controller::new(
                sidecarsets,
                settings(sidecarset::NAME, config.sidecarset_workers),
                client.named(&agent(sidecarset::NAME)),
                metrics.controller(sidecarset::NAME, config.sidecarset_workers),
                |key| &key.namespace,
            ),
            readiness: controller(
                readiness,
                settings(pod_readiness::NAME, pod_readiness::WORKERS),
                client,
                metrics,
            ),
            launches: controller(launches, settings(launch::NAME, launch::WORKERS), client, metrics),
            sidecars: caches.sidecars.clone(),
        }
    }

    fn handlers(&self) -> Handlers {
        let (of_set, of_pod, of_revision) = (self.sets.clone(), self.sets.clone(), self.sets.clone());
        let (of_claim, of_job, readiness) = (self.sets.clone(), self.sets.clone(), self.readiness.clone());
        let (sidecars, uninjected) = (self.sidecarsets.clone(), self.sidecars.uninjected.clone());
        let (launches, of_barrier) = (self.launches.clone(), self.launches.clone());
        Handlers {
            sidecars: self.sidecar_handlers(),
            set: Box::new(move |delta| of_set.push_all(delta.latest().map(|set| ObjectKey::of(&**set)))),
            pod: Box::new(move |delta| {
                of_pod.push_all(cloneset::owners_of_pod(&delta));
                sidecars.push_all(sidecarset::sets_of_pod(&delta));
                sidecars.push_all(uninjected.follow(&delta));
                // One that was concerned and is no more is forgotten at its last look.
                let either = delta.new.iter().chain(&delta.old);
                let concerned = either
                    .filter(|pod| kruise_plan_workloads::pod_readiness::concerns(pod))
                    .take(1);
                readiness.push_all(concerned.map(|pod| ObjectKey::of(&**pod)));
                launches.push_all(launch::of_pod(&delta));
            }),
            barrier: Box::new(move |delta| of_barrier.push_all(launch::of_barrier(&delta))),
            claim: Box::new(move |delta| of_claim.push_all(cloneset::owners_of_claim(&delta))),
            pull_job: Box::new(move |delta| of_job.push_all(cloneset::owners_of_pull_job(&delta))),
            revision: Box::new(move |delta| {
                let owner = delta.latest().and_then(|revision| {
                    let name = revision.owner_name.as_ref()?;
                    Some(ObjectKey::new(revision.namespace(), name.clone()))
                });
                of_revision.push_all(owner);
            }),
        }
    }

    fn sidecar_handlers(&self) -> SidecarHandlers {
        let (of_set, of_namespace) = (self.sidecarsets.clone(), self.sidecarsets.clone());
        let (of_revision, caches) = (self.sidecarsets.clone(), self.sidecars.clone());
        SidecarHandlers {
            set: Box::new(move |delta| of_set.push_all(delta.latest().map(|set| ObjectKey::of(&**set)))),
            namespace: Box::new(move |delta| {
                let sets = caches.sets.snapshot().list("");
                of_namespace.push_all(sidecarset::sets_of_namespace(&delta, &sets));
            }),
            revision: Box::new(move |delta| {
                let revision = delta.latest().map(|cached| cached.view.clone());
                of_revision.push_all(revision.and_then(|revision| sidecarset::set_of_revision(&revision)));
            }),
        }
    }

    /// Runs until told to stop; what is under way ends in order. They are told one after the other: a channel wakes those
    /// who wait for it in an order that differs from run to run.
    async fn run(&self, stop: watch::Receiver<bool>) {
        let mut ends = Vec::new();
        let mut end = || {
            let (sender, receiver) = watch::channel(false);
            ends.push(sender);
            receiver
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(self.sets.clone().run(shutdown::stopped(end())));
        tasks.spawn(self.sidecarsets.clone().run(shutdown::stopped(end())));
        tasks.spawn(self.readiness.clone().run(shutdown::stopped(end())));
        tasks.spawn(self.launches.clone().run(shutdown::stopped(end())));
        tasks.spawn(self.sidecars.clone().keep_scope(end()));
        let tell = async {
            shutdown::stopped(stop).await;
            for end in &ends {
                end.send_replace(true);
            }
        };
        tokio::join!(tasks.join_all(), tell);
    }
}
