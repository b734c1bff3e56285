//! What a controller brings to the loop, and what the loop reports.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_plan_kit::{Memory, Plan};
use kube_cache::ObjectKey;

use crate::{
    Served,
    caches::CacheView,
    events::{EventSink, ObjectRef},
};

/// What a controller decides. Everything else is the loop's work. A key is an object to reconcile; its namespace is empty
/// where the kind is in none.
pub trait Reconciler: Send + Sync + 'static {
    /// Reads the caches and decides. Synchronous, CPU only.
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome;

    /// Every key there is: what a new leader reconciles first.
    fn keys(&self) -> Vec<ObjectKey>;

    /// The object that events are about; `None` if it is gone.
    fn about(&self, key: &ObjectKey) -> Option<ObjectRef>;
}

/// The result of a reconcile.
pub enum Outcome {
    /// The object is gone, or none of this controller's business: forget it.
    Gone,
    /// Execute this.
    Plan(Box<Plan>),
}

/// Settings of a controller's loop.
#[derive(Clone)]
pub struct Settings {
    /// Controller name, as in metrics and logs.
    pub name: &'static str,
    /// Keys reconciled side by side.
    pub workers: usize,
    /// Back-off of failing keys.
    pub queue: kube_queue::Config,
    /// When a write that is not seen is given up.
    pub expectation_timeout: Duration,
    /// Which version of each resource goes over the wire.
    pub served: Arc<Served>,
    /// The caches that the controller reads.
    pub caches: Arc<dyn CacheView>,
    /// Where events go; `None` for a controller that has none.
    pub events: Option<EventSink>,
    /// Print plans, write nothing.
    pub dry_run: bool,
}

/// Receives every finished reconcile: the hook behind the controller metrics.
pub trait Observer: Send + Sync {
    /// A reconcile ended: `success`, `error`, `requeue` or `requeue_after`.
    fn reconciled(&self, result: &'static str, took: Duration);
    /// The queue as it is now.
    fn queued(&self, depth: usize, counters: kube_queue::Counters, unfinished: kube_queue::Unfinished);
    /// A key was handed out after waiting this long.
    fn popped(&self, waited: Duration);
    /// A reconcile panicked.
    fn panicked(&self);
    /// Writes for this object were not seen in time.
    fn overdue(&self, namespace: &str, name: &str);
}
