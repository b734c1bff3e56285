//! The loop every controller runs in: take a key, wait until its own writes are visible, plan, execute, report.
//!
//! # What it promises
//! - A key is worked on by one worker at a time, and not again before the caches show what its last plan wrote.
//! - An event of a plan is emitted once, not at every look, as long as the plan keeps repeating it.
//! - When a write may or may not have happened, or is not seen in time, the server is asked how new it is, and the next
//!   plan waits until the caches are as new: a plan on an older snapshot could do the same thing twice.
//! - What an execution ran into comes back to the next plan as [`Memory`]; it is retried with growing delays, or as soon
//!   as newer state is seen.
//! - Plans of one owner take a fiftieth of a worker's time at most while changes pour in: large sets are planned less often.
//! - A write for a version of a pod that the caches know to be outdated is not sent: it could only be refused.
//! - A status is written over the object it was planned from, or not at all.
//! - A plan that panics costs its own key a delay, and nobody else anything.
//! - Before it runs, a controller remembers nothing; when it starts it looks at every key.
//! - On a stop, objects under way end in order; nothing new starts.

mod live;
mod memory;
mod pace;
mod reconciler;
mod status;
#[cfg(test)]
mod tests;

pub use reconciler::{Observer, Outcome, Reconciler, Settings};

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use kruise_plan_kit::injected::{Bug, is_injected};
use kruise_plan_kit::{EventNote, Memory, Plan, ResourceId, Target};
use kube_cache::{CacheState, Expectations, ObjectKey, Verdict};
use kube_queue::{Priority, Queue};
use tokio::{sync::Notify, task::JoinSet, time::Instant};

use crate::{
    Client,
    caches::CacheView,
    executor::{self, Limits, Report, Run, StatusForm, World},
};
use pace::Pace;
use status::StatusWriter;

/// How long a closed gate is left alone.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// A running controller: a handle to push keys.
pub struct Controller<R: Reconciler> {
    reconciler: R,
    settings: Settings,
    client: Client,
    observer: Arc<dyn Observer>,
    started: Instant,
    inner: Mutex<Inner>,
    wake: Notify,
    status: StatusWriter<ObjectKey>,
}

struct Inner {
    queue: Queue<ObjectKey>,
    expectations: Expectations<ObjectKey, ResourceId>,
    owners: BTreeMap<ObjectKey, Owner>,
    status_form: StatusForm,
    phase: Phase,
}

/// Where a controller is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Somebody else leads: pushed keys are not kept, or they would pile up.
    Idle,
    Running,
    Stopping,
}

#[derive(Default)]
struct Owner {
    memory: Memory,
    announced: BTreeSet<(&'static str, String)>,
    /// Resources whose cache may not show what was written.
    unsure: BTreeSet<ResourceId>,
    pace: Pace,
}

impl<R: Reconciler> Controller<R> {
    /// A controller that has not started. Its work is spread fairly over namespaces.
    pub fn new(reconciler: R, settings: Settings, client: Client, observer: Arc<dyn Observer>) -> Arc<Self> {
        let inner = Inner {
            queue: Queue::new(settings.queue, |key: &ObjectKey| &*key.namespace),
            expectations: Expectations::new(settings.expectation_timeout),
            owners: BTreeMap::new(),
            status_form: StatusForm::Merged,
            phase: Phase::Idle,
        };
        Arc::new(Self {
            reconciler,
            status: StatusWriter::new(client.clone(), settings.served.clone()),
            settings,
            client,
            observer,
            started: Instant::now(),
            inner: Mutex::new(inner),
            wake: Notify::new(),
        })
    }

    /// What decides.
    pub fn reconciler(&self) -> &R {
        &self.reconciler
    }

    /// Something about this object changed.
    pub fn push(&self, key: ObjectKey) {
        let now = self.started.elapsed();
        {
            let mut inner = self.lock();
            if inner.phase == Phase::Idle {
                return;
            }
            let pause = inner
                .owners
                .get(&key)
                .map(|owner| owner.pace)
                .unwrap_or_default()
                .pause();
            inner.queue.push_coalesced(key, Priority::Live, pause, now);
        }
        self.wake.notify_one();
    }

    /// Something about each of these owners changed.
    pub fn push_all(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys {
            self.push(key);
        }
    }

    /// Looks at every key and works until `stop` resolves, then lets everything under way end.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        // In this order: what changes in between is pushed, too.
        self.lock().phase = Phase::Running;
        self.push_all(self.reconciler.keys());
        let mut tasks = JoinSet::new();
        for _ in 0..self.settings.workers.max(1) {
            tasks.spawn(Arc::clone(&self).work());
        }
        // Dropped with this future: who has lost the lease writes nothing any more.
        let mut status = JoinSet::new();
        status.spawn(self.status.clone().run());
        stop.await;
        self.lock().phase = Phase::Stopping;
        for _ in 0..self.settings.workers.max(1) {
            self.wake.notify_one();
        }
        self.wake.notify_waiters();
        while tasks.join_next().await.is_some() {}
        self.status.stop();
        if let Some(Err(error)) = status.join_next().await {
            tracing::error!(%error, "the status writer ended badly");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work(self: Arc<Self>) {
        loop {
            let notified = self.wake.notified();
            let (next, wake) = {
                let mut inner = self.lock();
                if inner.phase == Phase::Stopping {
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
            let handled = AssertUnwindSafe(self.handle(&next.key)).catch_unwind().await;
            let result = handled.unwrap_or_else(|_| self.panicked(&next.key));
            self.lock().queue.done(&next.key, self.started.elapsed());
            self.wake.notify_one();
            self.observer.reconciled(result, begun.elapsed());
        }
    }

    /// The panic's message went to standard error already.
    fn panicked(&self, key: &ObjectKey) -> &'static str {
        tracing::error!(controller = self.settings.name, %key, "a plan panicked");
        self.observer.panicked();
        self.retry(key);
        "error"
    }

    fn retry(&self, key: &ObjectKey) {
        let now = self.started.elapsed();
        self.lock()
            .queue
            .push_rate_limited(key.clone(), Priority::Live, now);
    }

    async fn handle(&self, key: &ObjectKey) -> &'static str {
        if let Some(result) = self.hold(key) {
            return result;
        }
        let unsure = self.unsure(key);
        if !unsure.is_empty() {
            if let Err(error) = self.ask_how_new(key, unsure).await {
                tracing::warn!(controller = self.settings.name, %key, %error, "the server cannot be read");
                self.retry(key);
                return "error";
            }
            if let Some(result) = self.hold(key) {
                return result;
            }
        }
        let memory = self
            .lock()
            .owners
            .get(key)
            .map(|owner| owner.memory.clone())
            .unwrap_or_default();
        let begun = Instant::now();
        let outcome = self.reconciler.reconcile(key, &memory, self.client.now());
        let took = begun.elapsed();
        match outcome {
            Outcome::Gone => {
                let mut inner = self.lock();
                inner.owners.remove(key);
                inner.expectations.forget(key);
                inner.queue.forget(key);
                "success"
            }
            Outcome::Plan(plan) if self.settings.dry_run => self.print(key, &plan),
            Outcome::Plan(plan) => {
                self.lock().owners.entry(key.clone()).or_default().pace.took(took);
                self.execute(key, *plan).await
            }
        }
    }

    /// Says how the look ends if the gate holds it.
    fn hold(&self, key: &ObjectKey) -> Option<&'static str> {
        if is_injected(Bug::GateOff) {
            return None;
        }
        let now = self.started.elapsed();
        let mut inner = self.lock();
        match inner.expectations.check(key, &Shown(&*self.settings.caches), now) {
            Verdict::Satisfied => None,
            Verdict::Pending { wait, .. } => {
                // What opens the gate mostly pushes the key, too; a bookmark does not, and some writes never show.
                let wait = wait.min(LOOK_AGAIN);
                inner.queue.push_after(key.clone(), Priority::Live, wait, now);
                Some("requeue_after")
            }
            Verdict::TimedOut(missing) => {
                tracing::warn!(controller = self.settings.name, %key, ?missing, "writes were not seen in time");
                let owner = inner.owners.entry(key.clone()).or_default();
                owner.unsure.extend(missing.iter().map(live::resource_of));
                drop(inner);
                self.observer.overdue(&key.namespace, &key.name);
                None
            }
        }
    }

    fn print(&self, key: &ObjectKey, plan: &Plan) -> &'static str {
        let steps = plan.writes.iter().flat_map(|object| &object.steps);
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

    async fn execute(&self, key: &ObjectKey, plan: Plan) -> &'static str {
        self.announce(key, &plan.events);
        self.status.submit(key, plan.status);
        let limits = Limits {
            status_form: self.lock().status_form,
            ..Limits::default()
        };
        let intents = memory::intents(&plan.writes);
        let written = self.may_be_outdated(&plan.writes);
        let stopping = || self.lock().phase == Phase::Stopping;
        let run = Run::new(plan.writes, limits);
        let newest = |target: &Target, uid: &str| self.settings.caches.version(target, uid);
        let world = World {
            should_stop: &stopping,
            newest: &newest,
        };
        let report = executor::execute(&self.client, &self.settings.served, run, &world).await;
        for note in &report.events {
            self.emit(key, note.clone());
        }
        if report.needs_live_read() {
            let mut inner = self.lock();
            let owner = inner.owners.entry(key.clone()).or_default();
            let watched = |resource: &ResourceId| self.settings.caches.observed(*resource).is_some();
            owner.unsure.extend(written.into_iter().filter(watched));
        }
        self.settle(key, &report, &intents, plan.requeue)
    }

    /// Emits what the last plan did not already say.
    fn announce(&self, key: &ObjectKey, events: &[EventNote]) {
        let said: BTreeSet<_> = events
            .iter()
            .map(|note| (note.reason.name, note.message.clone()))
            .collect();
        let fresh: Vec<EventNote> = {
            let mut inner = self.lock();
            let owner = inner.owners.entry(key.clone()).or_default();
            let before = std::mem::replace(&mut owner.announced, said);
            let is_fresh = |note: &&EventNote| !before.contains(&(note.reason.name, note.message.clone()));
            events.iter().filter(is_fresh).cloned().collect()
        };
        for note in fresh {
            self.emit(key, note);
        }
    }

    /// Emits an event on the object of this key, if it is still there.
    fn emit(&self, key: &ObjectKey, note: EventNote) {
        if let Some(events) = &self.settings.events
            && let Some(about) = self.reconciler.about(key)
        {
            events.emit(about, note);
        }
    }

    /// Files what the execution taught and decides when to look again.
    fn settle(
        &self,
        key: &ObjectKey,
        report: &Report,
        intents: &memory::Intents,
        requeue: Option<Duration>,
    ) -> &'static str {
        let now = self.started.elapsed();
        let mut inner = self.lock();
        inner.status_form = report.status_form;
        for expectation in &report.expectations {
            inner.expectations.record(key.clone(), expectation.clone(), now);
        }
        let owner = inner.owners.entry(key.clone()).or_default();
        let changed = memory::learn(&mut owner.memory, report, intents, &|uid| {
            self.settings.caches.present(ResourceId::PODS, uid)
        });
        if let Some(failure) = report.weightiest_failure() {
            // Newer state pushes the key before that; without any there is no point in trying soon.
            inner.queue.push_rate_limited(key.clone(), Priority::Live, now);
            if failure.is_conflict() {
                return "requeue";
            }
            tracing::warn!(controller = self.settings.name, %key, error = failure.message(), "a write failed");
            return "error";
        }
        inner.queue.forget(key);
        if changed {
            inner.queue.push(key.clone(), Priority::Live, now);
        }
        if !report.expectations.is_empty() {
            // If the change is never seen, nothing else would bring the key back.
            let patience = self.settings.expectation_timeout;
            inner.queue.push_after(key.clone(), Priority::Live, patience, now);
        }
        if let Some(after) = requeue {
            inner.queue.push_after(key.clone(), Priority::Live, after, now);
            return "requeue_after";
        }
        "success"
    }
}

/// The caches as expectations read them.
struct Shown<'a>(&'a dyn CacheView);

impl CacheState<ResourceId> for Shown<'_> {
    fn observed(&self, resource: ResourceId) -> Option<kube_cache::Version> {
        self.0.observed(resource)
    }

    fn present(&self, resource: ResourceId, uid: &str) -> bool {
        self.0.present(resource, uid)
    }
}
