//! What a controller brings, and what it is told.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_plan_kit::{EventNote, Memory, Plan, ResourceId, Target};

use crate::Served;

/// What a controller decides; everything else is the loop's business.
pub trait Planner: Send + Sync + 'static {
    /// What names an owner: usually namespace and name.
    type Key: Ord + Clone + Send + Sync + std::fmt::Display + 'static;

    /// Looks and decides. Synchronous, CPU only.
    fn plan(&self, key: &Self::Key, memory: &Memory, now: Timestamp) -> Outcome;

    /// Newest version of a resource that the caches show.
    fn observed(&self, resource: ResourceId) -> Option<kube_cache::Version>;

    /// Is an object with this uid in the cache and not terminating?
    fn present(&self, resource: ResourceId, uid: &str) -> bool;

    /// Version of the object with this uid, as the caches show it. A write for an older version is not sent.
    fn version(&self, target: &Target, uid: &str) -> Option<kube_cache::Version>;

    /// Every key there is: what a new leader looks at first.
    fn keys(&self) -> Vec<Self::Key>;

    /// Writes of this owner were not seen in time.
    fn overdue(&self, key: &Self::Key);

    /// Emits an event on the owner.
    fn emit(&self, key: &Self::Key, note: EventNote);
}

/// What looking at a key led to.
pub enum Outcome {
    /// The owner is gone: forget it.
    Gone,
    /// Do this.
    Plan(Box<Plan>),
}

/// Settings of a controller's loop.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Controller name, as in metrics and logs.
    pub name: &'static str,
    /// Keys worked on side by side.
    pub workers: usize,
    /// Back-off of failing keys.
    pub queue: kube_queue::Config,
    /// When a write that is not seen is given up.
    pub expectation_timeout: Duration,
    /// Which version of each resource goes over the wire.
    pub served: Arc<Served>,
    /// Print plans, write nothing.
    pub dry_run: bool,
}

/// Told of every finished look: the hook behind the controller metrics.
pub trait Observer: Send + Sync {
    /// One look ended: `success`, `error`, `requeue` or `requeue_after`.
    fn reconciled(&self, result: &'static str, took: Duration);
    /// The queue as it is now.
    fn queued(&self, depth: usize, counters: kube_queue::Counters, unfinished: kube_queue::Unfinished);
    /// A key was handed out after waiting this long.
    fn popped(&self, waited: Duration);
    /// A look panicked.
    fn panicked(&self);
}
