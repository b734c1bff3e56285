//! The interface between a controller and its reconcile loop.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_plan_kit::{Memory, Plan};
use kube_cache::ObjectKey;

use crate::{
    Served,
    caches::CacheView,
    events::{EventSink, ObjectRef},
};

/// The decisions of a controller. The loop does everything else. A key identifies an object to reconcile; its namespace is
/// empty for cluster-scoped kinds.
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
    /// Print plans, write nothing.
    pub dry_run: bool,
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
