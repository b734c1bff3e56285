//! The loop every controller runs in: take a key, wait until its own writes are visible, plan, execute, report.
//!
//! # What it promises
//! - A key is worked on by one worker at a time, and not again before the caches show what its last plan wrote.
//! - An event of a plan is emitted once, not at every look, as long as the plan keeps repeating it.
//! - What an execution ran into comes back to the next plan as [`Memory`]; a failure is retried with growing delays, a
//!   conflict as soon as the newer state is seen.
//! - On a stop, chains under way end in order; nothing new starts.

mod memory;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kruise_plan_kit::{EventNote, Memory, Plan, Resource};
use kube_cache::{Gate, Seen, Verdict};
use kube_queue::{Priority, Queue};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    Client,
    executor::{self, Failure, Limits, Report, Run, StatusForm},
};
use status::StatusWriter;

/// Shortest time between two plans of one owner while changes pour in.
const COALESCE: Duration = Duration::from_millis(50);

/// What a controller decides; everything else is the loop's business.
pub trait Planner: Send + Sync + 'static {
    /// What names an owner: usually namespace and name.
    type Key: Ord + Clone + Send + Sync + std::fmt::Display + 'static;

    /// Looks and decides. Synchronous, CPU only.
    fn plan(&self, key: &Self::Key, memory: &Memory, now: Timestamp) -> Outcome;

    /// Newest version of a resource that the caches show.
    fn observed(&self, resource: Resource) -> Option<kube_cache::Version>;

    /// Is an object with this uid in the cache and not terminating?
    fn present(&self, resource: Resource, uid: &str) -> bool;

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
    /// Served version of `apps.kruise.io/clonesets`.
    pub clonesets: String,
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
}

/// A running controller: a handle to push keys.
pub struct Controller<P: Planner> {
    planner: P,
    settings: Settings,
    client: Client,
    observer: Arc<dyn Observer>,
    started: Instant,
    inner: Mutex<Inner<P::Key>>,
    wake: Notify,
    status: StatusWriter,
}

struct Inner<K> {
    queue: Queue<K>,
    gate: Gate<K, Resource>,
    owners: BTreeMap<K, Owner>,
    status_form: StatusForm,
    stopping: bool,
}

#[derive(Default)]
struct Owner {
    memory: Memory,
    announced: BTreeSet<(&'static str, String)>,
}

impl<P: Planner> Controller<P> {
    /// A controller that has not started. `namespace_of` spreads the work fairly over namespaces.
    pub fn new(
        planner: P,
        settings: Settings,
        client: Client,
        observer: Arc<dyn Observer>,
        namespace_of: fn(&P::Key) -> &str,
    ) -> Arc<Self> {
        let inner = Inner {
            queue: Queue::new(settings.queue, namespace_of),
            gate: Gate::new(settings.expectation_timeout),
            owners: BTreeMap::new(),
            status_form: StatusForm::Merged,
            stopping: false,
        };
        Arc::new(Self {
            planner,
            status: StatusWriter::new(client.clone(), settings.clonesets.clone()),
            settings,
            client,
            observer,
            started: Instant::now(),
            inner: Mutex::new(inner),
            wake: Notify::new(),
        })
    }

    /// Something about this owner changed.
    pub fn push(&self, key: P::Key) {
        let now = self.started.elapsed();
        self.lock()
            .queue
            .push_coalesced(key, Priority::Live, COALESCE, now);
        self.wake.notify_one();
    }

    /// Something about each of these owners changed.
    pub fn push_all(&self, keys: impl IntoIterator<Item = P::Key>) {
        for key in keys {
            self.push(key);
        }
    }

    /// Works until `stop` resolves, then lets everything under way end.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        for _ in 0..self.settings.workers.max(1) {
            tasks.spawn(Arc::clone(&self).work());
        }
        let status = tokio::spawn(self.status.clone().run());
        stop.await;
        self.lock().stopping = true;
        for _ in 0..self.settings.workers.max(1) {
            self.wake.notify_one();
        }
        self.wake.notify_waiters();
        while tasks.join_next().await.is_some() {}
        self.status.stop();
        if let Err(error) = status.await {
            tracing::error!(%error, "the status writer ended badly");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<P::Key>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work(self: Arc<Self>) {
        loop {
            let notified = self.wake.notified();
            let (next, wake) = {
                let mut inner = self.lock();
                if inner.stopping {
                    return;
                }
                let now = self.started.elapsed();
                let next = inner.queue.pop(now);
                let (depth, counters) = (inner.queue.len(), inner.queue.counters());
                self.observer.queued(depth, counters, inner.queue.unfinished(now));
                (next, inner.queue.next_wake(now))
            };
            let Some(next) = next else {
                let pause = wake
                    .unwrap_or(Duration::from_hours(1))
                    .max(Duration::from_millis(1));
                let _ = tokio::time::timeout(pause, notified).await;
                continue;
            };
            if wake == Some(Duration::ZERO) {
                self.wake.notify_one();
            }
            self.observer.popped(next.waited);
            let begun = Instant::now();
            let result = self.handle(&next.key).await;
            self.lock().queue.done(&next.key, self.started.elapsed());
            self.wake.notify_one();
            self.observer.reconciled(result, begun.elapsed());
        }
    }

    async fn handle(&self, key: &P::Key) -> &'static str {
        let now = self.started.elapsed();
        let verdict = self.lock().gate.check(key, &Caches(&self.planner), now);
        match verdict {
            Verdict::Closed { wait, .. } => {
                // Whatever opens the gate also pushes the key; the wait is for what never comes.
                self.lock()
                    .queue
                    .push_after(key.clone(), Priority::Live, wait, now);
                return "requeue_after";
            }
            Verdict::TimedOut(missing) => {
                tracing::warn!(controller = self.settings.name, %key, ?missing, "writes were not seen in time");
                self.planner.overdue(key);
            }
            Verdict::Open => {}
        }
        let memory = self
            .lock()
            .owners
            .get(key)
            .map(|owner| owner.memory.clone())
            .unwrap_or_default();
        match self.planner.plan(key, &memory, Timestamp::now()) {
            Outcome::Gone => {
                let mut inner = self.lock();
                inner.owners.remove(key);
                inner.gate.forget(key);
                inner.queue.forget(key);
                "success"
            }
            Outcome::Plan(plan) if self.settings.dry_run => self.print(key, &plan),
            Outcome::Plan(plan) => self.execute(key, *plan).await,
        }
    }

    fn print(&self, key: &P::Key, plan: &Plan) -> &'static str {
        let steps = plan.chains.iter().flat_map(|chain| &chain.steps);
        let lines: BTreeSet<_> = steps
            .map(|step| ("plan", format!("{}: {}", step.write, step.reason)))
            .collect();
        let mut inner = self.lock();
        let owner = inner.owners.entry(key.clone()).or_default();
        for (_, line) in lines.difference(&owner.announced) {
            println!("{key}: would {line}");
        }
        owner.announced = lines;
        "success"
    }

    async fn execute(&self, key: &P::Key, plan: Plan) -> &'static str {
        self.announce(key, &plan.events);
        if let Some(status) = plan.status {
            self.status.submit(status);
        }
        let limits = Limits {
            status_form: self.lock().status_form,
            ..Limits::default()
        };
        let intents = memory::intents(&plan.chains);
        let stopping = || self.lock().stopping;
        let run = Run::new(plan.chains, limits);
        let report = executor::execute(&self.client, &self.settings.clonesets, run, stopping).await;
        for note in &report.events {
            self.planner.emit(key, note.clone());
        }
        self.settle(key, &report, &intents, plan.requeue)
    }

    /// Emits what the last plan did not already say.
    fn announce(&self, key: &P::Key, events: &[EventNote]) {
        let said: BTreeSet<_> = events
            .iter()
            .map(|note| (note.reason, note.message.clone()))
            .collect();
        let fresh: Vec<EventNote> = {
            let mut inner = self.lock();
            let owner = inner.owners.entry(key.clone()).or_default();
            let before = std::mem::replace(&mut owner.announced, said);
            let is_fresh = |note: &&EventNote| !before.contains(&(note.reason, note.message.clone()));
            events.iter().filter(is_fresh).cloned().collect()
        };
        for note in fresh {
            self.planner.emit(key, note);
        }
    }

    /// Files what the execution taught and decides when to look again.
    fn settle(
        &self,
        key: &P::Key,
        report: &Report,
        intents: &memory::Intents,
        requeue: Option<Duration>,
    ) -> &'static str {
        let now = self.started.elapsed();
        let mut inner = self.lock();
        inner.status_form = report.status_form;
        for expectation in &report.expectations {
            inner.gate.record(key.clone(), expectation.clone(), now);
        }
        let owner = inner.owners.entry(key.clone()).or_default();
        let changed = memory::learn(&mut owner.memory, report, intents);
        match &report.first_failure {
            Some(Failure::Conflict(_) | Failure::NameTaken(_)) => {
                inner.queue.push_after(key.clone(), Priority::Live, COALESCE, now);
                return "requeue";
            }
            Some(failure) => {
                tracing::warn!(controller = self.settings.name, %key, error = failure.message(), "a write failed");
                inner.queue.push_rate_limited(key.clone(), Priority::Live, now);
                return "error";
            }
            None => inner.queue.forget(key),
        }
        if changed {
            inner.queue.push(key.clone(), Priority::Live, now);
        }
        if let Some(after) = requeue {
            inner.queue.push_after(key.clone(), Priority::Live, after, now);
            return "requeue_after";
        }
        "success"
    }
}

struct Caches<'a, P>(&'a P);

impl<P: Planner> Seen<Resource> for Caches<'_, P> {
    fn observed(&self, resource: Resource) -> Option<kube_cache::Version> {
        self.0.observed(resource)
    }

    fn present(&self, resource: Resource, uid: &str) -> bool {
        self.0.present(resource, uid)
    }
}
