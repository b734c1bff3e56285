//! The interface between a controller and its reconcile loop.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_plan_kit::{Memory, Plan};
use kube_cache::{Cached, Delta, ObjectKey, Version};

use crate::{
    Served,
    caches::CacheView,
    events::{EventSink, ObjectRef},
};

/// The decisions of a controller. The loop does everything else. A key identifies an object to reconcile; its
/// namespace is empty for cluster-scoped kinds.
pub trait Reconciler: Send + Sync + 'static {
    /// Reads the caches and returns a plan. Synchronous and without I/O.
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome;

    /// The keys of all existing objects, which a new leader reconciles.
    fn keys(&self) -> Vec<ObjectKey>;

    /// The object that events refer to; `None` if it was deleted.
    fn about(&self, key: &ObjectKey) -> Option<ObjectRef>;
}

/// The result of a reconcile.
pub enum Outcome {
    /// The object was deleted, or this controller does not manage it: drop its state.
    Gone,
    /// Execute this.
    Plan(Box<Plan>),
}

/// Settings of a controller's loop.
#[derive(Clone)]
pub struct Settings {
    /// Controller name, as in metrics and logs.
    pub name: &'static str,
    /// Keys reconciled in parallel.
    pub workers: usize,
    /// Backoff of failing keys and rate limits.
    pub queue: kube_queue::Config,
    /// Time after which an unmet expectation expires.
    pub expectation_timeout: Duration,
    /// The served version of each resource.
    pub served: Arc<Served>,
    /// The caches that the controller reads.
    pub caches: Arc<dyn CacheView>,
    /// Receives events; `None` for a controller without events.
    pub events: Option<EventSink>,
    /// Shortest time between two reconciles of a key while changes keep coming.
    pub interval: Duration,
    /// Receives the plans instead of the API server.
    pub dry_run: Option<Arc<dyn DryRun>>,
}

/// The state of an object in the cache of its controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectState {
    /// Its version; of an object that is gone, the last one that was seen. `None` if versions cannot be compared.
    pub version: Option<Version>,
    /// Counts the changes of its specification.
    pub generation: Option<i64>,
    /// Is it there, and not being deleted?
    pub stays: bool,
}

impl ObjectState {
    /// The state that a change leads to; `None` if the change is of nothing.
    pub fn of<T: Cached>(delta: &Delta<T>) -> Option<Self> {
        let latest = delta.latest()?;
        Some(Self {
            version: Version::of(&**latest),
            generation: latest.generation(),
            stays: delta.new.as_ref().is_some_and(|new| !new.is_terminating()),
        })
    }
}

/// Receives the plans of controllers that write nothing.
pub trait DryRun: Send + Sync {
    /// So many controllers begin; each will report the end of its first pass.
    fn begins(&self, controllers: usize);
    /// The plan of an object. `about` is `None` if the object was deleted meanwhile.
    fn planned(&self, controller: &'static str, key: &ObjectKey, about: Option<&ObjectRef>, plan: &Plan);
    /// What the plan of an object needs cannot be read. It is tried again.
    fn failed(&self, controller: &'static str, key: &ObjectKey, about: Option<&ObjectRef>, error: &str);
    /// The object was deleted, or the controller does not manage it.
    fn gone(&self, controller: &'static str, key: &ObjectKey);
    /// Every object that existed when the controller began was planned, is gone, or failed.
    fn first_pass_ended(&self, controller: &'static str);
    /// The cache shows another state of an object of the controller.
    fn changed(&self, _controller: &'static str, _key: &ObjectKey, _state: ObjectState) {}
}

/// Receives the figures of every reconcile for the controller metrics.
pub trait Observer: Send + Sync {
    /// A reconcile ended: `success`, `error`, `requeue` or `requeue_after`.
    fn reconciled(&self, result: &'static str, took: Duration);
    /// The current state of the queue.
    fn queued(&self, depth: usize, counters: kube_queue::Counters, unfinished: kube_queue::Unfinished);
    /// A key was popped after this time in the queue.
    fn popped(&self, waited: Duration);
    /// A reconcile panicked.
    fn panicked(&self);
    /// Expectations of this object timed out.
    fn overdue(&self, namespace: &str, name: &str);
}
