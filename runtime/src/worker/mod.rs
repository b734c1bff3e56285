//! The reconcile loop of every controller: pop a key, check its expectations, plan, execute, record the result.
//!
//! # Guarantees
//! - One worker at a time reconciles a key, and not again before the caches contain the writes of its last plan.
//! - An event that consecutive plans repeat is emitted once, not at every reconcile.
//! - If the result of a write is unknown, the object is read before the next plan, which waits until the caches contain
//!   what was read ([`doubts`]).
//! - If the caches do not contain a write in time, the server's current resource version is read, and the next plan
//!   waits until the caches have reached it: a plan from an older snapshot could repeat a write.
//! - What a plan needs beside the caches is read from the API server, and passed to the next plan as [`Memory::read`].
//! - The failures of an execution are passed to the next plan as [`Memory`]. The key is retried with exponential
//!   backoff, or as soon as the caches change.
//! - Plans of one owner take at most a fiftieth of a worker's time while changes keep coming: large sets are
//!   planned less often.
//! - A write for an outdated version of an object, as far as the caches show, is not sent: the server would refuse it.
//! - A status patch applies to the version of the object that it was planned from, or is not written.
//! - A panic in a plan delays only its own key.
//! - A controller that does not run drops pushed keys. When it starts, it reconciles every key. Changes during that
//!   time are reconciled first ([`Priority::Initial`]).
//! - On a stop, objects that have started are completed; nothing new starts.

mod doubts;
mod first_pass;
mod kind;
mod live;
mod memory;
mod needs;
mod pace;
mod reconciler;
mod rollouts;
mod status;
#[cfg(test)]
mod tests;

pub use kind::{KindReconciler, Round};
pub use reconciler::{DryRun, ObjectState, Observer, Outcome, Reconciler, Settings};

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use kruise_plan_kit::injected::is_injected;
use kruise_plan_kit::{EventNote, Involved, Memory, Plan, ResourceId, Target};
use kube_cache::{CacheState, Expectations, ObjectKey, Verdict};
use kube_queue::{Priority, Queue};
use tokio::{sync::Notify, task::JoinSet, time::Instant};

use crate::{
    Client,
    caches::CacheView,
    events::ObjectRef,
    executor::{self, Conditions, Doubt, Failure, Limits, Report, Run, StatusForm, StepResult},
};
use doubts::Late;
use first_pass::FirstPass;
use pace::Pace;
use rollouts::News;
use status::StatusWriter;

/// Longest time between two checks of unmet expectations.
const RECHECK_EXPECTATIONS: Duration = Duration::from_secs(2);

/// Pause after a lost race for a budget, whose newer version is about to arrive. After so many in a row it doubles,
/// up to [`AFTER_FAILURE`]: the cache is behind, and to ask again brings nothing.
const LOST_RACE: Duration = pace::SHORTEST;
const RACES: u32 = 4;

/// Shortest time until the next plan after writes of which none succeeded: what is due at once is not, as nothing came
/// of it.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// A dry run plans an object with writes again after this long, even if nothing changes.
const PLAN_UNWRITTEN_AGAIN: Duration = Duration::from_secs(10);

/// A running controller: a handle to push keys.
///
/// One type for all reconcilers: its code is compiled once.
pub struct Controller {
    reconciler: Arc<dyn Reconciler>,
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
    first_pass: FirstPass,
}

/// The lifecycle of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Another replica leads: pushed keys are dropped. Otherwise they would accumulate.
    Idle,
    Running,
    Stopping,
}

/// Reason and message of an event, and the object that it is about.
type Announced = (&'static str, String, Option<Box<Involved>>);

#[derive(Default)]
struct Owner {
    memory: Memory,
    /// The events of the last plan.
    announced: BTreeSet<Announced>,
    refusals: memory::Refusals,
    /// Objects that must be read before the next plan.
    doubts: BTreeSet<Doubt>,
    /// Objects whose creation may still take effect.
    late: Late,
    /// Resources whose caches may lack a write: they did not contain it in time.
    unconfirmed: BTreeSet<ResourceId>,
    pace: Pace,
    /// Races for a budget that it has lost in a row.
    lost_races: u32,
    rollout: Option<rollouts::Known>,
}

impl Controller {
    /// A controller that has not started. Its queue is fair between namespaces.
    pub fn new(
        reconciler: Arc<dyn Reconciler>,
        settings: Settings,
        client: Client,
        observer: Arc<dyn Observer>,
    ) -> Arc<Self> {
        let inner = Inner {
            queue: Queue::new(settings.queue, |key: &ObjectKey| &*key.namespace),
            expectations: Expectations::new(settings.expectation_timeout),
            owners: BTreeMap::new(),
            status_form: StatusForm::Merged,
            phase: Phase::Idle,
            first_pass: FirstPass::default(),
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

    /// The object that events about this key refer to; `None` if it was deleted.
    pub fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        self.reconciler.about(key)
    }

    /// The plan of an object from the caches as they are now, beside the queue; `None` if there is no such object.
    /// Nothing is read for it that the caches do not have.
    pub fn plan_now(&self, key: &ObjectKey) -> Option<Plan> {
        let mut memory = self.memory(key);
        memory.trials.are_made = false;
        match self.plan_once(key, &memory).0 {
            Outcome::Plan(plan) => Some(*plan),
            Outcome::Gone => None,
        }
    }

    /// Requests a reconcile of this object, because it or something that it depends on changed.
    pub fn push(&self, key: ObjectKey) {
        self.push_with(key, Priority::Live);
    }

    /// Requests a reconcile of each of these objects.
    pub fn push_all(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys {
            self.push(key);
        }
    }

    fn push_with(&self, key: ObjectKey, priority: Priority) {
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
                .pause()
                .max(self.settings.interval);
            inner.queue.push_coalesced(key, priority, pause, now);
        }
        self.wake.notify_one();
    }

    /// Reconciles every key and then all changes until `stop` resolves. Completes what has started.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        // Keys are accepted before they are listed, so that a change in between is not lost.
        self.lock().phase = Phase::Running;
        let keys = self.reconciler.keys();
        if let Some(dry_run) = &self.settings.dry_run {
            let has_ended = self.lock().first_pass.begin(&keys);
            if has_ended {
                dry_run.first_pass_ended(self.settings.name);
            }
        }
        for key in keys {
            self.push_with(key, Priority::Initial);
        }
        let mut tasks = JoinSet::new();
        for _ in 0..self.settings.workers.max(1) {
            tasks.spawn(Arc::clone(&self).work());
        }
        // Dropped together with this future: a manager that has lost the lease must not write.
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
            tracing::error!(%error, "the status writer failed");
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
            let started = Instant::now();
            let handled = AssertUnwindSafe(self.handle(&next.key)).catch_unwind().await;
            let result = handled.unwrap_or_else(|_| self.panicked(&next.key));
            self.lock().queue.done(&next.key, self.started.elapsed());
            self.pass(&next.key);
            self.wake.notify_one();
            self.observer.reconciled(result, started.elapsed());
        }
    }

    /// The panic hook has already printed the message.
    fn panicked(&self, key: &ObjectKey) -> &'static str {
        tracing::error!(controller = self.settings.name, namespace = %key.namespace, name = %key.name, "a reconcile panicked");
        self.observer.panicked();
        if let Some(dry_run) = &self.settings.dry_run {
            dry_run.failed(self.settings.name, key, None, "the reconcile panicked");
        }
        self.retry(key);
        "error"
    }

    /// Counts the key in the first pass of a dry run.
    fn pass(&self, key: &ObjectKey) {
        let Some(dry_run) = &self.settings.dry_run else {
            return;
        };
        let has_ended = self.lock().first_pass.pass(key);
        if has_ended {
            dry_run.first_pass_ended(self.settings.name);
        }
    }

    fn retry(&self, key: &ObjectKey) {
        let now = self.started.elapsed();
        self.lock()
            .queue
            .push_rate_limited(key.clone(), Priority::Live, now);
    }

    async fn handle(&self, key: &ObjectKey) -> &'static str {
        if let Some(result) = self.defer(key) {
            return result;
        }
        let (doubts, unconfirmed) = (self.doubts(key), self.unconfirmed(key));
        if !doubts.is_empty() || !unconfirmed.is_empty() {
            let read = async {
                self.resolve(key, doubts).await?;
                self.expect_current(key, unconfirmed).await
            };
            if let Err(error) = read.await {
                tracing::warn!(controller = self.settings.name, namespace = %key.namespace, name = %key.name, %error, "what the last writes did cannot be read");
                self.retry(key);
                return "error";
            }
            if let Some(result) = self.defer(key) {
                return result;
            }
        }
        let memory = self.memory(key);
        let (outcome, duration) = match self.planned(key, memory).await {
            Ok(planned) => planned,
            Err(error) => {
                tracing::warn!(controller = self.settings.name, namespace = %key.namespace, name = %key.name, %error, "what a plan needs cannot be read");
                if let Some(dry_run) = &self.settings.dry_run {
                    let about = self.reconciler.about(key);
                    dry_run.failed(self.settings.name, key, about.as_ref(), &error.to_string());
                }
                self.retry(key);
                return "error";
            }
        };
        match outcome {
            Outcome::Gone => {
                let mut inner = self.lock();
                inner.owners.remove(key);
                inner.expectations.forget(key);
                inner.queue.forget(key);
                drop(inner);
                if let Some(dry_run) = &self.settings.dry_run {
                    dry_run.gone(self.settings.name, key);
                }
                "success"
            }
            Outcome::Plan(plan) => {
                if let Some(dry_run) = &self.settings.dry_run {
                    let about = self.reconciler.about(key);
                    dry_run.planned(self.settings.name, key, about.as_ref(), &plan);
                    // What the plan waits for comes about by time. A write is not made, and so it is planned again.
                    let again = (!plan.writes.is_empty()).then_some(PLAN_UNWRITTEN_AGAIN);
                    if let Some(after) = plan.requeue.into_iter().chain(again).min() {
                        let after = after.max(pace::SHORTEST);
                        let now = self.started.elapsed();
                        let mut inner = self.lock();
                        inner.queue.push_after(key.clone(), Priority::Live, after, now);
                    }
                    return "success";
                }
                self.lock()
                    .owners
                    .entry(key.clone())
                    .or_default()
                    .pace
                    .record(duration);
                self.execute(key, *plan).await
            }
        }
    }

    fn memory(&self, key: &ObjectKey) -> Memory {
        let now = self.started.elapsed();
        let mut inner = self.lock();
        let Some(owner) = inner.owners.get_mut(key) else {
            return Memory::default();
        };
        Memory {
            late: owner.late.at(now).cloned().collect(),
            ..owner.memory.clone()
        }
    }

    /// Checks the expectations of the key. If they are unmet, it requeues the key and returns the result of the
    /// reconcile.
    fn defer(&self, key: &ObjectKey) -> Option<&'static str> {
        if is_injected("GateOff") {
            return None;
        }
        let now = self.started.elapsed();
        let mut inner = self.lock();
        match inner
            .expectations
            .check(key, &ViewState(&*self.settings.caches), now)
        {
            Verdict::Satisfied => None,
            Verdict::Pending { wait, .. } => {
                // A cache event that meets an expectation usually pushes the key, too. A bookmark does not, and a
                // write may cause no event.

                let wait = wait.min(RECHECK_EXPECTATIONS);
                inner.queue.push_after(key.clone(), Priority::Live, wait, now);
                Some("requeue_after")
            }
            Verdict::TimedOut(missing) => {
                tracing::warn!(controller = self.settings.name, namespace = %key.namespace, name = %key.name, ?missing, "expectations timed out");
                let owner = inner.owners.entry(key.clone()).or_default();
                owner.unconfirmed.extend(missing.iter().map(live::resource_of));
                drop(inner);
                self.observer.overdue(&key.namespace, &key.name);
                None
            }
        }
    }

    async fn execute(&self, key: &ObjectKey, plan: Plan) -> &'static str {
        self.log(key, &plan);
        self.announce(key, &plan.events);
        self.status.submit(key, plan.status);
        let limits = Limits {
            status_form: self.lock().status_form,
            ..Limits::default()
        };
        let purposes = memory::purposes(&plan.writes);
        let (attempts, known, newest_pods) = (plan.attempts, plan.known, plan.newest);
        let stopping = || self.lock().phase == Phase::Stopping;
        let run = Run::new(plan.writes, limits);
        let newest = |target: &Target, uid: &str| self.settings.caches.version(target, uid);
        let conditions = Conditions {
            should_stop: &stopping,
            newest: &newest,
        };
        let report = executor::execute(&self.client, &self.settings.served, run, &conditions).await;
        for note in &report.events {
            self.emit(key, note.clone());
        }
        if let Some(owner) = self.lock().owners.get_mut(key) {
            owner.memory.count(attempts, self.client.now());
            owner.memory.known = known.unwrap_or_default();
            if let Some(newest) = newest_pods {
                owner.memory.newest = newest;
            }
        }
        self.settle(key, &report, &purposes, plan.requeue)
    }

    /// Logs what is new about the rollout, and in detail what is going to be written.
    fn log(&self, key: &ObjectKey, plan: &Plan) {
        let (controller, namespace, name) = (self.settings.name, &*key.namespace, &*key.name);
        if let Some(stage) = &plan.stage {
            let revision = &stage.revision;
            let news = {
                let mut inner = self.lock();
                let owner = inner.owners.entry(key.clone()).or_default();
                rollouts::observe(&mut owner.rollout, stage.clone())
            };
            for one in news {
                match one {
                    News::Begun(from) => {
                        tracing::info!(controller, namespace, name, revision, from, "rollout begun");
                    }
                    News::Held(reason) => {
                        tracing::info!(controller, namespace, name, revision, reason, "rollout held");
                    }
                    News::GoesOn => tracing::info!(controller, namespace, name, revision, "rollout goes on"),
                    News::Ended => tracing::info!(controller, namespace, name, revision, "rollout ended"),
                }
            }
        }
        for step in plan.writes.iter().flat_map(|object| &object.steps) {
            let (write, reason) = (&step.write, &step.reason);
            tracing::debug!(controller, namespace, name, %write, reason, "write");
        }
    }

    /// Emits the events that the last plan did not contain.
    fn announce(&self, key: &ObjectKey, events: &[EventNote]) {
        let identity = |note: &EventNote| (note.reason.name, note.message.clone(), note.about.clone());
        let current: BTreeSet<_> = events.iter().map(identity).collect();
        let new: Vec<EventNote> = {
            let mut inner = self.lock();
            let owner = inner.owners.entry(key.clone()).or_default();
            let before = std::mem::replace(&mut owner.announced, current);
            let is_new = |note: &&EventNote| !before.contains(&identity(note));
            events.iter().filter(is_new).cloned().collect()
        };
        for note in new {
            self.emit(key, note);
        }
    }

    /// Emits an event on the object that it names, or on the object of this key, if the object still exists.
    fn emit(&self, key: &ObjectKey, note: EventNote) {
        let about = match &note.about {
            Some(object) => Some(ObjectRef::of_involved(object)),
            None => self.reconciler.about(key),
        };
        if let Some((events, about)) = self.settings.events.as_ref().zip(about) {
            events.emit(about, note);
        }
    }

    /// Records the result of an execution and requeues the key if necessary.
    fn settle(
        &self,
        key: &ObjectKey,
        report: &Report,
        purposes: &[memory::Purpose],
        requeue: Option<Duration>,
    ) -> &'static str {
        let now = self.started.elapsed();
        let mut inner = self.lock();
        inner.status_form = report.status_form;
        for expectation in &report.expectations {
            inner.expectations.record(key.clone(), expectation.clone(), now);
        }
        let owner = inner.owners.entry(key.clone()).or_default();
        owner.doubts.extend(report.doubts.iter().cloned());
        for (created, _) in &report.created {
            owner.late.appeared(created);
        }
        let changed = memory::record(
            &mut owner.memory,
            report,
            purposes,
            &|uid| self.settings.caches.present(ResourceId::PODS, uid),
            self.client.now(),
        );
        let is_new = owner.refusals.count(report, purposes);
        let races = owner.lost_races;
        let is_race = memory::has_lost_races_only(report, purposes);
        owner.lost_races = if is_race { races.saturating_add(1) } else { 0 };
        let is_done = report.count(|result| matches!(result, StepResult::Done)) > 0;
        if let Some(mut after) = requeue {
            let is_vain = !is_done && !report.failures.is_empty();
            if is_vain && after.is_zero() && !is_injected("RefusedCopiesFirst") {
                after = AFTER_FAILURE;
            }
            // The queue keeps the earliest time: work that is due soon does not wait for the back-off of a failed
            // write.
            inner.queue.push_after(key.clone(), Priority::Live, after, now);
        }
        if let Some(failure) = report.most_severe_failure() {
            // Where some writes succeed, the few that fail do not add up to a long delay.
            if is_done {
                inner.queue.forget(key);
            }
            let races = is_race.then_some(races);
            return self.retry_writes(&mut inner.queue, key, failure, (races, is_new));
        }
        inner.queue.forget(key);
        if changed {
            inner.queue.push(key.clone(), Priority::Live, now);
        }
        if !report.expectations.is_empty() {
            // If no cache event for the write arrives, nothing else requeues the key.
            let timeout = self.settings.expectation_timeout;
            inner.queue.push_after(key.clone(), Priority::Live, timeout, now);
        }
        if requeue.is_some() {
            return "requeue_after";
        }
        "success"
    }

    /// Requeues a key with writes that have failed.
    fn retry_writes(
        &self,
        queue: &mut Queue<ObjectKey>,
        key: &ObjectKey,
        failure: &Failure,
        (races, is_new): (Option<u32>, bool),
    ) -> &'static str {
        let now = self.started.elapsed();
        if let Some(races) = races {
            // It is no failure, and says nothing about the next attempt. The newer budget is about to be in the cache.
            queue.forget(key);
            let doublings = races.saturating_sub(RACES).min(16);
            let pause = AFTER_FAILURE.min(LOST_RACE * 2_u32.pow(doublings));
            queue.push_after(key.clone(), Priority::Live, pause, now);
            return "requeue";
        }
        // A cache event pushes the key earlier. Without one, an early retry would fail again, unless it is for other
        // objects.
        queue.push_rate_limited(key.clone(), Priority::Live, now);
        if is_new {
            queue.push_after(key.clone(), Priority::Live, AFTER_FAILURE, now);
        }
        if failure.is_conflict() {
            return "requeue";
        }
        tracing::warn!(controller = self.settings.name, namespace = %key.namespace, name = %key.name, error = failure.message(), "a write failed");
        "error"
    }
}

/// Adapts the caches of a controller for its expectations.
struct ViewState<'a>(&'a dyn CacheView);

impl CacheState<ResourceId> for ViewState<'_> {
    fn observed(&self, resource: ResourceId) -> Option<kube_cache::Version> {
        self.0.observed(resource)
    }

    fn present(&self, resource: ResourceId, uid: &str) -> bool {
        self.0.present(resource, uid)
    }
}
