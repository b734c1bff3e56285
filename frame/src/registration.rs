//! Registrations of controllers.
//!
//! A [`Registration`] is data: the kind that a controller reconciles, the rights that it needs, its flags and
//! metrics. The manager derives everything else from it.
//!
//! A controller implements [`Controls`]: how it is constructed from the caches that it reads, and which keys an event
//! enqueues. It implements [`Reconciler`] with a plan crate.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt};
use go_compat::flags::{Flag, Kind as Type};
use kruise_admission::kinds::KindWebhooks;
use kruise_api::{
    definition::Kind,
    names::events::{INVALID_SPEC, Reason},
};
use kruise_plan_kit::{Plan, ResourceId, inplace::VerticalScaling};
use kruise_runtime::{
    Client, Served,
    caches::{CacheId, Caches, Held},
    discovery,
    events::{EventSink, ObjectRef},
    metrics::{Metrics, objects::Spec},
    shutdown,
    worker::{Controller, DryRun, ObjectState, Reconciler, Settings},
};
use kube_cache::{Delta, Index, ObjectKey, SharedInformer};
use tokio::{sync::watch, task::JoinHandle};

use super::{
    config::Config,
    flags::{Limit, flag},
};
use crate::{
    explain::Explainer,
    gates::Gates,
    workloads::{CachedWorkload, WorkloadKind, Workloads},
};

/// A controller, as data.
pub struct Registration {
    /// Name in metrics, logs, user agents and events.
    pub name: &'static str,
    /// The kind that it reconciles; `None` if its keys are pods.
    pub kind: Option<&'static Kind>,
    /// Feature gates without any of which it is off; empty if it needs none.
    gates: &'static [&'static str],
    /// How many keys it reconciles concurrently.
    workers: Workers,
    /// Its flags, beside the one of its workers.
    flags: &'static [Flag],
    /// Limits of its flags.
    pub limits: &'static [Limit],
    /// Rights on resources beside the status of its kind. It also watches these resources.
    pub grants: &'static [Grant],
    /// Resources that it watches only.
    pub watches: &'static [ResourceId],
    /// Metrics of its own.
    pub metrics: &'static [&'static Spec],
    /// Counter of expectations that timed out, by namespace and name.
    pub overdue: Option<&'static Spec>,
    /// The webhooks of its kind; `None` if it has none.
    pub webhooks: Option<&'static KindWebhooks>,
    /// Explains one of its objects, for `kruise explain`.
    pub explain: Option<Explainer>,
    /// Whether it emits events.
    events: bool,
    /// Reasons of its events, but for that of a specification that cannot be read.
    reasons: &'static [&'static [&'static Reason]],
    /// Whether it finds the workloads of pods.
    pub finds_workloads: bool,
    /// Its kind as one of the workloads of pods that have a cache; `None` if it is none.
    pub workload: Option<WorkloadKind>,
    /// Shortest time between two reconciles of a key while changes keep coming.
    interval: Duration,
    build: fn(&'static Registration, &mut Setup<'_>) -> Arc<dyn Runnable>,
}

/// How many keys a controller reconciles concurrently.
#[derive(Clone, Copy, Debug)]
enum Workers {
    /// The value of this flag.
    Flag(Flag),
    /// A fixed number; upstream has no flag for it either.
    Fixed(usize),
}

/// A right on a resource, beside the rights to watch it.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    /// The resource.
    pub resource: ResourceId,
    /// The subresource, such as `status`; empty for the object itself.
    pub subresource: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// The right is needed only if one of these feature gates is on; always if there are none.
    pub gates: &'static [&'static str],
    /// Where the objects are.
    pub area: Area,
    /// Are the objects watched?
    pub is_watched: bool,
}

/// Where the objects of a right are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// In the namespace that the manager is limited to, otherwise in all.
    Watched,
    /// In no namespace.
    Cluster,
    /// In the manager's namespace.
    Own,
    /// In the namespace of the Secrets that node agents read. A manager that is limited to a namespace has no right
    /// there. The right to watch the resource is granted apart from it.
    Agents,
}

impl Grant {
    /// A right on the objects of a resource.
    pub const fn on(resource: ResourceId, verbs: &'static [&'static str]) -> Self {
        Self {
            resource,
            subresource: "",
            verbs,
            gates: &[],
            area: Area::Watched,
            is_watched: true,
        }
    }

    /// The same right, without that to watch the objects.
    #[must_use]
    pub const fn unwatched(self) -> Self {
        Self {
            is_watched: false,
            ..self
        }
    }

    /// The same right on a subresource.
    #[must_use]
    pub const fn part(self, subresource: &'static str) -> Self {
        Self { subresource, ..self }
    }

    /// The same right on objects that are in no namespace.
    #[must_use]
    pub const fn cluster_scoped(self) -> Self {
        Self {
            area: Area::Cluster,
            ..self
        }
    }

    /// The same right on objects in the manager's namespace only.
    #[must_use]
    pub const fn in_own_namespace(self) -> Self {
        Self {
            area: Area::Own,
            ..self
        }
    }

    /// The same right on objects in the namespace of node agents only.
    #[must_use]
    pub const fn in_agent_namespace(self) -> Self {
        Self {
            area: Area::Agents,
            ..self
        }
    }

    /// The same right, only if one of these feature gates is on.
    #[must_use]
    pub const fn with(self, gates: &'static [&'static str]) -> Self {
        Self { gates, ..self }
    }
}

impl Registration {
    /// A controller without a kind, without rights, that emits no events.
    pub const fn of<C: Controls>(name: &'static str, workers: usize) -> Self {
        Self {
            name,
            kind: None,
            gates: &[],
            workers: Workers::Fixed(workers),
            flags: &[],
            limits: &[],
            grants: &[],
            watches: &[],
            metrics: &[],
            overdue: None,
            webhooks: None,
            explain: None,
            events: false,
            reasons: &[],
            finds_workloads: false,
            workload: None,
            interval: Duration::ZERO,
            build: build::<C>,
        }
    }

    /// It reconciles this kind and emits events on its objects. A flag sets the number of workers.
    #[must_use]
    pub const fn reconciles(self, kind: &'static Kind, flag_name: &'static str, help: &'static str) -> Self {
        Self {
            kind: Some(kind),
            workers: Workers::Flag(flag(flag_name, Type::Int, "3", help)),
            events: true,
            ..self
        }
    }

    /// It reconciles this kind and emits events on its objects, with a fixed number of workers.
    #[must_use]
    pub const fn reconciles_unflagged(self, kind: &'static Kind) -> Self {
        Self {
            kind: Some(kind),
            events: true,
            ..self
        }
    }

    /// A flag sets the number of workers. For a controller without a kind.
    #[must_use]
    pub const fn workers(self, flag_name: &'static str, help: &'static str) -> Self {
        Self {
            workers: Workers::Flag(flag(flag_name, Type::Int, "3", help)),
            ..self
        }
    }

    /// Its kind has these webhooks.
    #[must_use]
    pub const fn reviewed(self, webhooks: &'static KindWebhooks) -> Self {
        Self {
            webhooks: Some(webhooks),
            ..self
        }
    }

    /// Its objects can be explained.
    #[must_use]
    pub const fn explained(self, explain: Explainer) -> Self {
        Self {
            explain: Some(explain),
            ..self
        }
    }

    /// It emits events of these reasons.
    #[must_use]
    pub const fn emits(self, reasons: &'static [&'static [&'static Reason]]) -> Self {
        Self {
            events: true,
            reasons,
            ..self
        }
    }

    /// It is on with any of these feature gates only.
    #[must_use]
    pub const fn gated(self, gates: &'static [&'static str]) -> Self {
        Self { gates, ..self }
    }

    /// It finds the workloads of pods: their caches are followed, and it may watch them and read all scales.
    #[must_use]
    pub const fn finds_workloads(self) -> Self {
        Self {
            finds_workloads: true,
            ..self
        }
    }

    /// Its objects are workloads of pods, which are found in their cache.
    #[must_use]
    pub const fn owns_pods<W: CachedWorkload>(self) -> Self {
        Self {
            workload: Some(WorkloadKind::of::<W>()),
            ..self
        }
    }

    /// It reconciles a key no more often than this while changes keep coming.
    #[must_use]
    pub const fn paced(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// It has these flags.
    #[must_use]
    pub const fn flagged(self, flags: &'static [Flag]) -> Self {
        Self { flags, ..self }
    }

    /// Its flags have these limits.
    #[must_use]
    pub const fn limited(self, limits: &'static [Limit]) -> Self {
        Self { limits, ..self }
    }

    /// It watches these resources only.
    #[must_use]
    pub const fn watching(self, watches: &'static [ResourceId]) -> Self {
        Self { watches, ..self }
    }

    /// It needs these rights, and watches these resources.
    #[must_use]
    pub const fn granted(self, grants: &'static [Grant]) -> Self {
        Self { grants, ..self }
    }

    /// It has these metrics; `overdue` counts expectations that timed out.
    #[must_use]
    pub const fn measured(self, overdue: &'static Spec, metrics: &'static [&'static Spec]) -> Self {
        Self {
            overdue: Some(overdue),
            metrics,
            ..self
        }
    }

    /// Whether the feature gates let it run.
    pub fn is_on(&self, gates: &Gates) -> bool {
        self.gates.is_empty() || self.gates.iter().any(|gate| gates.on(gate))
    }

    /// Feature gates without any of which it is off; empty if it needs none.
    pub const fn gates(&self) -> &'static [&'static str] {
        self.gates
    }

    /// The resource of its kind.
    pub fn resource(&self) -> Option<ResourceId> {
        self.kind.map(ResourceId::of)
    }

    /// Reasons of its events.
    pub fn reasons(&self) -> impl Iterator<Item = &'static Reason> {
        let unreadable = self.kind.map(|_| &INVALID_SPEC);
        self.reasons.iter().copied().flatten().copied().chain(unreadable)
    }

    /// Its flags.
    pub fn flags(&self) -> Vec<Flag> {
        let workers = match self.workers {
            Workers::Flag(flag) => Some(flag),
            Workers::Fixed(_) => None,
        };
        workers.into_iter().chain(self.flags.iter().copied()).collect()
    }

    fn worker_count(&self, config: &Config) -> usize {
        match self.workers {
            Workers::Flag(flag) => config.workers(flag.name),
            Workers::Fixed(workers) => workers,
        }
    }
}

/// Construction and wiring of a controller.
pub trait Controls: Reconciler + Sized {
    /// Constructs the reconciler from the caches that it reads.
    fn new(setup: &mut Setup<'_>) -> Self;

    /// Maps events of the caches to keys.
    fn wire(wiring: &mut Wiring<'_, Self>);
}

/// What all controllers are constructed from.
#[derive(Clone, Copy)]
pub struct Parts<'s> {
    /// Flags and gates.
    pub config: &'s Config,
    /// The served version of each resource.
    pub served: &'s Arc<Served>,
    /// Other facts about the API server.
    pub server: &'s ServerFacts,
    /// The workloads of pods.
    pub workloads: &'s Workloads,
    /// Metrics.
    pub metrics: &'s Metrics,
    /// Client of the API server.
    pub client: &'s Client,
    /// Receives the plans of controllers that write nothing.
    pub dry_run: Option<&'s Arc<dyn DryRun>>,
}

/// Constructs one controller after the other.
pub struct Setup<'s> {
    /// What all controllers are constructed from.
    pub parts: Parts<'s>,
    caches: &'s mut Caches,
    /// Names of the caches that the current controller reads.
    read: Vec<&'static str>,
    built: Built,
}

/// Facts about the API server that plans depend on.
#[derive(Clone, Debug, Default)]
pub struct ServerFacts {
    /// How the server resizes running containers.
    pub vertical_scaling: VerticalScaling,
    /// Resources of a feature gate that the manager may not list.
    pub denied: BTreeSet<ResourceId>,
}

impl ServerFacts {
    /// True if the gate is on, and the resource is served and may be listed.
    pub fn allows(&self, gates: &Gates, served: &Served, gate: &str, resource: ResourceId) -> bool {
        gates.on(gate) && served.version(resource).is_some() && !self.denied.contains(&resource)
    }
}

/// Facts about the API server that plans depend on. Requests are sent only for gates that are on.
pub async fn server_facts(
    gates: &Gates,
    registrations: &[&Registration],
    client: &Client,
    served: &Served,
    namespace: Option<&str>,
) -> anyhow::Result<ServerFacts> {
    let mut server = ServerFacts::default();
    if gates.on("InPlaceWorkloadVerticalScaling") {
        server.vertical_scaling = VerticalScaling::of_server(&discovery::server_version(client).await?);
    }
    let grants = registrations.iter().flat_map(|registration| registration.grants);
    let mut asked = BTreeSet::new();
    for grant in grants {
        let &[gate] = grant.gates else {
            continue;
        };
        if !gates.on(gate) {
            continue;
        }
        let namespace = namespace.filter(|_| grant.area != Area::Cluster);
        let Ok(path) = served.collection(grant.resource, namespace) else {
            continue;
        };
        if !asked.insert(grant.resource) {
            continue;
        }
        if !discovery::may_list(client, &path).await? {
            tracing::warn!(
                "gate {gate} is on, but the manager may not list {}, so that nothing is done with them; \
                 `kruise manifests --feature-gates={gate}=true` prints the rights that it needs",
                grant.resource
            );
            server.denied.insert(grant.resource);
        }
    }
    Ok(server)
}

/// The controllers, and the tasks beside them.
#[derive(Default)]
pub struct Built {
    /// The controllers, in the order of their registrations.
    pub controllers: Vec<Arc<dyn Runnable>>,
    /// Other tasks that run only in the leader.
    pub leader_tasks: Vec<LeaderTask>,
    /// Tasks that write events. Each ends when its controller is dropped.
    pub events: Vec<JoinHandle<()>>,
    /// The registrations of the controllers, in the same order.
    registrations: Vec<&'static Registration>,
}

impl Built {
    /// The controllers with their registrations.
    pub fn registered(&self) -> impl Iterator<Item = (&'static Registration, &Arc<dyn Runnable>)> {
        self.registrations.iter().copied().zip(&self.controllers)
    }
}

/// A task of the leader beside the controllers. It ends when the receiver turns true.
pub type LeaderTask = Box<dyn Fn(watch::Receiver<bool>) -> BoxFuture<'static, ()> + Send + Sync>;

/// The registrations whose gates are on and whose kind is served.
fn running<'r>(
    gates: &'r Gates,
    served: &'r Served,
    registrations: &'r [&'static Registration],
) -> impl Iterator<Item = &'static Registration> {
    registrations.iter().copied().filter(move |registration| {
        let resource = registration.resource();
        let is_served = resource.is_none_or(|resource| served.version(resource).is_some());
        is_served && registration.is_on(gates)
    })
}

/// The kinds of these registrations.
pub fn kinds(registrations: &[&'static Registration]) -> Vec<&'static Kind> {
    let kinds = registrations.iter().filter_map(|registration| registration.kind);
    kinds.collect()
}

/// Whether a controller of these registrations runs that finds the workloads of pods.
pub fn find_workloads(gates: &Gates, served: &Served, registrations: &[&'static Registration]) -> bool {
    running(gates, served, registrations).any(|registration| registration.finds_workloads)
}

/// Builds the controllers of these registrations. Those whose gate is off or whose kind is not served are left out.
pub fn build_all(parts: Parts<'_>, caches: &mut Caches, registrations: &[&'static Registration]) -> Built {
    let mut setup = Setup {
        parts,
        caches,
        read: Vec::new(),
        built: Built::default(),
    };
    for registration in running(&parts.config.gates, parts.served, registrations) {
        setup.read.clear();
        let controller = (registration.build)(registration, &mut setup);
        setup.built.controllers.push(controller);
        setup.built.registrations.push(registration);
    }
    setup.built
}

impl Setup<'_> {
    /// Declares a cache that the controller reads.
    pub fn cache<T: Held>(&mut self, id: &CacheId<T>) -> SharedInformer<T> {
        self.indexed(id, &[])
    }

    /// As [`Setup::cache`], with indexes of the controller's own.
    pub fn indexed<T: Held>(&mut self, id: &CacheId<T>, indexes: &[Index<T>]) -> SharedInformer<T> {
        self.read.push(id.name);
        self.caches.indexed(id, indexes)
    }

    /// As [`Setup::cache`], for a resource that is needed only with a feature gate. The cache stays empty if the
    /// gate is off, or if the resource is not served or may not be listed.
    pub fn cache_with<T: Held>(&mut self, gate: &str, id: &CacheId<T>) -> SharedInformer<T> {
        self.read.push(id.name);
        let is_allowed = self.allows(gate, id.resource);
        self.caches.informer_if(is_allowed, id)
    }

    /// True if the gate is on, and the resource is served and may be listed.
    pub fn allows(&self, gate: &str, resource: ResourceId) -> bool {
        let Parts {
            config,
            served,
            server,
            ..
        } = self.parts;
        server.allows(&config.gates, served, gate, resource)
    }

    /// Adds a task that runs while this process is the leader.
    pub fn while_leading(&mut self, task: LeaderTask) {
        self.built.leader_tasks.push(task);
    }

    fn settings(&mut self, registration: &Registration) -> Settings {
        let (name, config) = (registration.name, self.parts.config);
        let events = registration.events.then(|| {
            let (sink, written) = EventSink::spawn(self.parts.client.named(&agent(name)), name);
            self.built.events.push(written);
            sink.declaring(registration.reasons())
        });
        Settings {
            name,
            workers: registration.worker_count(config),
            queue: config.retries,
            interval: registration.interval,
            expectation_timeout: config.expectation_timeout,
            served: self.parts.served.clone(),
            caches: Arc::new(self.caches.view(&self.read)),
            events,
            dry_run: self.parts.dry_run.cloned(),
        }
    }
}

/// User agent of a component of the manager.
pub fn agent(component: &str) -> String {
    format!("{}/{component}", kruise_api::names::MANAGER)
}

fn build<C: Controls>(registration: &'static Registration, setup: &mut Setup<'_>) -> Arc<dyn Runnable> {
    let reconciler = C::new(setup);
    let settings = setup.settings(registration);
    let observer = setup
        .parts
        .metrics
        .controller(settings.name, settings.workers, registration.overdue);
    let client = setup.parts.client.named(&agent(settings.name));
    let reconciler = Arc::new(reconciler);
    let controller = Controller::new(reconciler.clone(), settings, client, observer);
    C::wire(&mut Wiring {
        reconciler: &reconciler,
        controller: &controller,
        dry_run: setup.parts.dry_run.map(|dry_run| (registration.name, dry_run)),
        caches: setup.caches,
    });
    controller
}

/// Maps events of the caches to keys of a controller.
pub struct Wiring<'w, C: Reconciler> {
    reconciler: &'w Arc<C>,
    controller: &'w Arc<Controller>,
    /// The name of the controller, and what receives its plans in a dry run.
    dry_run: Option<(&'static str, &'w Arc<dyn DryRun>)>,
    caches: &'w mut Caches,
}

impl<C: Controls> Wiring<'_, C> {
    /// The changed object is the key.
    pub fn primary<T: Held>(&mut self, id: &CacheId<T>) {
        if let Some((name, dry_run)) = self.dry_run {
            let dry_run = dry_run.clone();
            self.caches.on_change(id, move |delta| {
                if let Some((object, state)) = delta.latest().zip(ObjectState::of(delta)) {
                    dry_run.changed(name, &ObjectKey::of(&**object), state);
                }
            });
        }
        self.maps(id, |_, delta| {
            delta.latest().map(|object| ObjectKey::of(&**object))
        });
    }

    /// The reconciler of the controller.
    pub fn reconciler(&self) -> &C {
        self.reconciler
    }

    /// Enqueues keys for what is no change of a cache.
    pub fn enqueuer(&self) -> Enqueuer<C> {
        Enqueuer {
            reconciler: Arc::downgrade(self.reconciler),
            controller: Arc::downgrade(self.controller),
        }
    }

    /// `keys` returns the keys that a change enqueues.
    pub fn maps<T: Held, I: IntoIterator<Item = ObjectKey>>(
        &mut self,
        id: &CacheId<T>,
        keys: impl Fn(&C, &Delta<T>) -> I + Send + 'static,
    ) {
        let (controller, reconciler) = (self.controller.clone(), self.reconciler.clone());
        self.caches.on_change(id, move |delta| {
            controller.push_all(keys(&reconciler, delta));
        });
    }
}

/// Enqueues keys of a controller, as long as that exists. What the reconciler owns may hold it.
pub struct Enqueuer<C> {
    reconciler: Weak<C>,
    controller: Weak<Controller>,
}

impl<C: Reconciler> Enqueuer<C> {
    /// Enqueues the keys that `keys` returns.
    pub fn push_all<I: IntoIterator<Item = ObjectKey>>(&self, keys: impl FnOnce(&C) -> I) {
        if let Some((reconciler, controller)) = self.reconciler.upgrade().zip(self.controller.upgrade()) {
            controller.push_all(keys(&reconciler));
        }
    }
}

/// A controller of any type.
pub trait Runnable: Send + Sync {
    /// Runs until the receiver turns true; plans in execution end in order.
    fn run(self: Arc<Self>, stop: watch::Receiver<bool>) -> BoxFuture<'static, ()>;

    /// An object, and its plan from the caches as they are now; `None` if there is no such object.
    fn plan_now(&self, key: &ObjectKey) -> Option<(ObjectRef, Plan)>;
}

impl Runnable for Controller {
    fn run(self: Arc<Self>, stop: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        Controller::run(self, shutdown::stopped(stop)).boxed()
    }

    fn plan_now(&self, key: &ObjectKey) -> Option<(ObjectRef, Plan)> {
        let about = self.about(key)?;
        Some((about, Self::plan_now(self, key)?))
    }
}

#[cfg(test)]
mod tests;
