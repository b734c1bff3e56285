//! What a controller is: a [`Registration`] says as data what it acts on, what it may write and which flags it has, and
//! builds it; the rest of the manager derives everything else from that.
//!
//! [`Controls`] is what a controller implements: how it is made from the caches that it reads, and which keys a change
//! of an object leads to. Its decisions are those of a plan crate, behind [`Reconciler`].

use std::{collections::BTreeSet, sync::Arc};

use futures::future::{BoxFuture, FutureExt};
use go_compat::flags::{Flag, Kind as Type};
use kruise_api::definition::Kind;
use kruise_plan_kit::{ResourceId, inplace::VerticalScaling};
use kruise_runtime::{
    Client, Served,
    caches::{CacheId, Caches, Held},
    events::EventSink,
    metrics::{Metrics, objects::Spec},
    shutdown,
    worker::{Controller, Reconciler, Settings},
};
use kube_cache::{Delta, ObjectKey, SharedInformer};
use tokio::{sync::watch, task::JoinHandle};

use super::{config::Config, flags::flag};
use crate::{controllers::Lookups, explain::Explainer};

/// A controller, as data.
pub struct Registration {
    /// Name in metrics, logs, user agents and events.
    pub name: &'static str,
    /// The kind whose objects are its keys; `None` if it acts on pods of others.
    pub kind: Option<&'static Kind>,
    /// How many keys it works on side by side.
    workers: Workers,
    /// Flags of its own, beside the one of its workers.
    flags: &'static [Flag],
    /// What it may write, beside the status of its kind. It watches all of it.
    pub grants: &'static [Grant],
    /// What it watches and does not write.
    pub watches: &'static [ResourceId],
    /// Metrics that it sets itself.
    pub metrics: &'static [&'static Spec],
    /// Counts writes that were not seen in time, by namespace and name.
    pub overdue: Option<&'static Spec>,
    /// How `kruise explain` plans one of its objects.
    pub explain: Option<Explainer>,
    /// Does it emit events?
    events: bool,
    build: fn(&'static Registration, &mut Setup<'_>) -> Arc<dyn Running>,
}

/// How many keys a controller works on side by side.
#[derive(Clone, Copy, Debug)]
enum Workers {
    /// As this flag says.
    Flag(Flag),
    /// Always so many; upstream has no flag for it either.
    Fixed(usize),
}

/// A right to write, or to read without a cache.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    /// On what.
    pub resource: ResourceId,
    /// On which part of it, such as `status`; empty for the object itself.
    pub subresource: &'static str,
    /// What.
    pub verbs: &'static [&'static str],
    /// The feature gate with which alone it is needed.
    pub gate: Option<&'static str>,
}

impl Grant {
    /// A right on objects of a resource.
    pub const fn on(resource: ResourceId, verbs: &'static [&'static str]) -> Self {
        Self {
            resource,
            subresource: "",
            verbs,
            gate: None,
        }
    }

    /// The same on a part of them.
    #[must_use]
    pub const fn part(self, subresource: &'static str) -> Self {
        Self { subresource, ..self }
    }

    /// The same, with this feature gate only.
    #[must_use]
    pub const fn with(self, gate: &'static str) -> Self {
        Self {
            gate: Some(gate),
            ..self
        }
    }
}

impl Registration {
    /// A controller that emits no events and acts on no kind of its own.
    pub const fn of<C: Controls>(name: &'static str, workers: usize) -> Self {
        Self {
            name,
            kind: None,
            workers: Workers::Fixed(workers),
            flags: &[],
            grants: &[],
            watches: &[],
            metrics: &[],
            overdue: None,
            explain: None,
            events: false,
            build: build::<C>,
        }
    }

    /// It acts on objects of this kind, as many side by side as a flag says, and emits events on them.
    #[must_use]
    pub const fn reconciles(self, kind: &'static Kind, flag_name: &'static str, help: &'static str) -> Self {
        Self {
            kind: Some(kind),
            workers: Workers::Flag(flag(flag_name, Type::Int, "3", help)),
            events: true,
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

    /// It emits events.
    #[must_use]
    pub const fn emits(self) -> Self {
        Self { events: true, ..self }
    }

    /// It has these flags.
    #[must_use]
    pub const fn flagged(self, flags: &'static [Flag]) -> Self {
        Self { flags, ..self }
    }

    /// It watches these resources and does not write them.
    #[must_use]
    pub const fn watching(self, watches: &'static [ResourceId]) -> Self {
        Self { watches, ..self }
    }

    /// It needs these rights, and to watch what they are for.
    #[must_use]
    pub const fn granted(self, grants: &'static [Grant]) -> Self {
        Self { grants, ..self }
    }

    /// It counts; `overdue` counts writes that were not seen in time.
    #[must_use]
    pub const fn measured(self, overdue: &'static Spec, metrics: &'static [&'static Spec]) -> Self {
        Self {
            overdue: Some(overdue),
            metrics,
            ..self
        }
    }

    /// The resource whose objects are its keys.
    pub fn resource(&self) -> Option<ResourceId> {
        self.kind.map(|kind| ResourceId {
            group: kind.group,
            plural: kind.plural,
        })
    }

    /// Its flags.
    pub fn flags(&self) -> Vec<Flag> {
        let workers = match self.workers {
            Workers::Flag(flag) => Some(flag),
            Workers::Fixed(_) => None,
        };
        workers.into_iter().chain(self.flags.iter().copied()).collect()
    }

    fn workers(&self, config: &Config) -> usize {
        match self.workers {
            Workers::Flag(flag) => config.workers(flag.name),
            Workers::Fixed(workers) => workers,
        }
    }

    /// What it may write beside its own kind, in the order of its grants.
    fn written(&self) -> Vec<ResourceId> {
        let mut resources: Vec<ResourceId> = Vec::new();
        for grant in self.grants {
            if !resources.contains(&grant.resource) && self.resource() != Some(grant.resource) {
                resources.push(grant.resource);
            }
        }
        resources
    }
}

/// What a controller implements beside its decisions.
pub trait Controls: Reconciler + Sized {
    /// From the caches that it reads.
    fn new(setup: &mut Setup<'_>) -> Self;

    /// Which keys a change leads to.
    fn wire(wiring: &mut Wiring<'_, Self>);
}

/// What all controllers are made from.
#[derive(Clone, Copy)]
pub struct Parts<'s> {
    /// Flags and gates.
    pub config: &'s Config,
    /// Which version of each resource is served.
    pub served: &'s Arc<Served>,
    /// What else the API server said.
    pub server: &'s Server,
    /// What webhooks look up.
    pub lookups: &'s Lookups,
    /// Metrics.
    pub metrics: &'s Metrics,
    /// The way to the API server.
    pub client: &'s Client,
}

/// The construction of one controller after the other.
pub struct Setup<'s> {
    /// What all of them are made from.
    pub parts: Parts<'s>,
    caches: &'s mut Caches,
    /// Names of the caches that the controller under construction reads.
    read: Vec<&'static str>,
    built: Built,
}

/// Facts about the API server that decisions depend on.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// How resources of running containers change.
    pub vertical_scaling: VerticalScaling,
    /// Resources that a gate asks for and that are not served, or may not be listed.
    pub denied: BTreeSet<ResourceId>,
}

/// The controllers, and what runs beside them.
#[derive(Default)]
pub struct Built {
    /// The controllers, in the order of their list.
    pub controllers: Vec<Arc<dyn Running>>,
    /// What else only the leader does.
    pub leading: Vec<Leading>,
    /// Tasks that write events; each ends when its controller is gone.
    pub events: Vec<JoinHandle<()>>,
}

/// Work of the leader beside the controllers: it ends soon after the receiver turns true.
pub type Leading = Box<dyn Fn(watch::Receiver<bool>) -> BoxFuture<'static, ()> + Send + Sync>;

/// Builds these controllers, but for those whose kind is not served.
pub fn build_all(parts: Parts<'_>, caches: &mut Caches, registrations: &[&'static Registration]) -> Built {
    let mut setup = Setup {
        parts,
        caches,
        read: Vec::new(),
        built: Built::default(),
    };
    let is_served = |registration: &&&Registration| {
        let resource = registration.resource();
        resource.is_none_or(|resource| parts.served.version(resource).is_some())
    };
    for registration in registrations.iter().filter(is_served) {
        setup.read.clear();
        let controller = (registration.build)(registration, &mut setup);
        setup.built.controllers.push(controller);
    }
    setup.built
}

impl Setup<'_> {
    /// A cache that the controller reads.
    pub fn cache<T: Held>(&mut self, id: &CacheId<T>) -> SharedInformer<T> {
        self.read.push(id.name);
        self.caches.informer(id)
    }

    /// As [`Setup::cache`], of a resource that a gate asks for: it stays empty where the gate is off or the server does
    /// not let us see it.
    pub fn cache_with<T: Held>(&mut self, gate: &str, id: &CacheId<T>) -> SharedInformer<T> {
        self.read.push(id.name);
        let is_wanted = self.allows(gate, id.resource);
        self.caches.informer_if(is_wanted, id)
    }

    /// Is the gate on, and may what it asks for be seen?
    pub fn allows(&self, gate: &str, resource: ResourceId) -> bool {
        let Parts {
            config,
            served,
            server,
            ..
        } = self.parts;
        config.gates.on(gate) && served.version(resource).is_some() && !server.denied.contains(&resource)
    }

    /// Something else that the leader does.
    pub fn while_leading(&mut self, work: Leading) {
        self.built.leading.push(work);
    }

    fn settings(&mut self, registration: &Registration) -> Settings {
        let (name, config) = (registration.name, self.parts.config);
        let events = registration.events.then(|| {
            let (sink, written) = EventSink::spawn(self.parts.client.named(&agent(name)), name);
            self.built.events.push(written);
            sink
        });
        Settings {
            name,
            workers: registration.workers(config),
            queue: config.retries,
            expectation_timeout: config.expectation_timeout,
            served: self.parts.served.clone(),
            caches: Arc::new(self.caches.view(&self.read, &registration.written())),
            events,
            dry_run: config.dry_run,
        }
    }
}

/// User agent of a part of the manager.
pub fn agent(component: &str) -> String {
    format!("{}/{component}", kruise_api::names::MANAGER)
}

fn build<C: Controls>(registration: &'static Registration, setup: &mut Setup<'_>) -> Arc<dyn Running> {
    let reconciler = C::new(setup);
    let settings = setup.settings(registration);
    let observer = setup
        .parts
        .metrics
        .controller(settings.name, settings.workers, registration.overdue);
    let client = setup.parts.client.named(&agent(settings.name));
    let controller = Controller::new(reconciler, settings, client, observer);
    C::wire(&mut Wiring {
        controller: &controller,
        caches: setup.caches,
    });
    controller
}

/// From a change of an object to the keys of a controller.
pub struct Wiring<'w, C: Reconciler> {
    controller: &'w Arc<Controller<C>>,
    caches: &'w mut Caches,
}

impl<C: Controls> Wiring<'_, C> {
    /// The object that changed is the key.
    pub fn primary<T: Held>(&mut self, id: &CacheId<T>) {
        self.maps(id, |_, delta| {
            delta.latest().map(|object| ObjectKey::of(&**object))
        });
    }

    /// `keys` says which keys a change leads to.
    pub fn maps<T: Held, I: IntoIterator<Item = ObjectKey>>(
        &mut self,
        id: &CacheId<T>,
        keys: impl Fn(&C, &Delta<T>) -> I + Send + 'static,
    ) {
        let controller = self.controller.clone();
        self.caches.on_change(id, move |delta| {
            controller.push_all(keys(controller.reconciler(), delta));
        });
    }
}

/// A controller without its type.
pub trait Running: Send + Sync {
    /// Works until the receiver turns true; what is under way ends in order.
    fn run(self: Arc<Self>, stop: watch::Receiver<bool>) -> BoxFuture<'static, ()>;
}

impl<C: Controls> Running for Controller<C> {
    fn run(self: Arc<Self>, stop: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        Controller::run(self, shutdown::stopped(stop)).boxed()
    }
}

#[cfg(test)]
mod tests;
