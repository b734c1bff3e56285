//! Probes of containers: the NodePodProbe of the node lists them, and its status reports their results.
//!
//! Each probe is a *worker* (`worker`): it runs once in its period, and its result changes when enough runs in a
//! row say so. A result is that of one container. When a container begins anew, the result is `Unknown` until its
//! successor was probed, and a run for its predecessor counts for nothing. Which containers run is listed once for
//! all probes that are due (`listing`), and at most once a second.
//!
//! A probe that leaves the list is cancelled. No more run at a time than the limits say, and those that are due
//! wait in the order of their times. The status is written by JSON patches of the pods whose results changed
//! (`status`).

mod listing;
mod status;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kruise_api::podprobemarker::State;

use crate::call::{Call, after, earlier};
use crate::node_pod_probe::{ContainerProbe, NodePodProbeView, PodProbeStatus, ProbeState, ProbedPod};
use crate::runtime::Runtime;
use crate::status_writer::StatusWriter;
use crate::{Effect, Failure, ProbeResult, ProbedContainer, RunId, WriteError};

use listing::Listing;
use worker::{Kind, Turn, Worker};

/// Commands that run at a time: each is a process that the runtime starts.
const COMMANDS: usize = 16;
/// Commands of one pod among them: those of one may take as long as they like.
const COMMANDS_OF_POD: usize = 4;
/// Requests and connections that are under way at a time.
const REQUESTS: usize = 256;

/// UID of the pod, and name of the probe.
type Key = (Box<str>, Box<str>);

/// The half of an agent that is about probes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probes {
    node: Option<Arc<NodePodProbeView>>,
    workers: BTreeMap<Key, Worker>,
    listing: Listing,
    writer: StatusWriter<Vec<PodProbeStatus>>,
    /// When the agent started.
    started: Option<Timestamp>,
    /// What the last look at all workers has found; none once something changes that it does not show.
    look: Option<Look>,
    next_run: RunId,
}

/// A look at all workers.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// When the first one is due of those that were not.
    next: Option<Timestamp>,
    /// Does one wait that was due: for a listing, for room or for the runtime?
    is_one_due: bool,
}

impl Probes {
    pub(crate) fn started(&mut self, call: &Call<'_>) {
        self.started = Some(call.now);
    }

    /// The NodePodProbe was listed, created or changed.
    pub(crate) fn sync(&mut self, view: Arc<NodePodProbeView>, call: &mut Call<'_>) {
        self.writer.observe(&*view, view.statuses.as_ref(), call.now);
        let before = self.node.replace(view.clone());
        if before.as_ref().is_some_and(|before| before.pods == view.pods) {
            return;
        }
        self.look = None;
        // What is stored when the agent starts may still be so. Later the workers know better.
        let stored = view.statuses.as_deref().filter(|_| before.is_none());
        let mut gone = std::mem::take(&mut self.workers);
        for pod in &view.pods {
            for probe in &pod.probes {
                let key = (pod.uid.clone(), probe.name.clone());
                if self.workers.contains_key(&key) {
                    continue;
                }
                let worker = match gone.remove(&key) {
                    Some(mut worker) => {
                        worker.update(probe, call);
                        worker
                    }
                    None => self.begin(pod, probe, find(stored, pod, &probe.name), call),
                };
                self.workers.insert(key, worker);
            }
        }
        for worker in gone.values_mut() {
            worker.cancel(call);
        }
        let pods = self.workers.keys().map(|(pod, _)| pod.clone());
        self.listing.limit_to(pods.collect());
        self.writer.touch(call.now);
    }

    /// A worker whose first run is spread over its period if the agent has just started: then all its probes are new.
    fn begin(
        &self,
        pod: &ProbedPod,
        probe: &ContainerProbe,
        stored: Option<&ProbeState>,
        call: &mut Call<'_>,
    ) -> Worker {
        let mut due = call.now;
        if let (Some(started), Ok(probe)) = (self.started, &probe.probe)
            && call.now < after(started, probe.period)
        {
            // Probes of one pod run at the same times, so that one listing serves them.
            due = call.after(share(probe.period, &pod.uid));
        }
        Worker::new(pod, probe, stored, due, call)
    }

    /// The NodePodProbe is gone, and its probes with it.
    pub(crate) fn deleted(&mut self, call: &mut Call<'_>) {
        self.node = None;
        self.look = None;
        for worker in self.workers.values_mut() {
            worker.cancel(call);
        }
        self.workers.clear();
        self.listing.limit_to(BTreeSet::new());
        self.writer.forget();
    }

    /// The containers of the pods were listed.
    pub(crate) fn listed(
        &mut self,
        result: Result<Vec<ProbedContainer>, Failure>,
        runtime: &mut Runtime,
        call: &mut Call<'_>,
    ) {
        self.look = None;
        let problem = runtime.answered(&result, call);
        let Ok(mut containers) = result else {
            self.listing.failed(&problem.unwrap_or_default(), call);
            return;
        };
        self.listing.succeeded(&mut containers, call.now);
        let by_name: BTreeMap<(&str, &str), &ProbedContainer> = containers
            .iter()
            .map(|one| ((&*one.pod, &*one.name), one))
            .collect();
        let mut has_changed = false;
        for ((pod, _), worker) in &mut self.workers {
            let found = by_name.get(&(&**pod, worker.container())).copied();
            has_changed |= worker.observe(found, call);
        }
        if has_changed {
            self.writer.touch(call.now);
        }
    }

    /// A run has ended. That of a worker which has another one, or none, counts for nothing.
    pub(crate) fn ended(
        &mut self,
        run: RunId,
        result: ProbeResult,
        runtime: &mut Runtime,
        call: &mut Call<'_>,
    ) {
        let mut workers = self.workers.values_mut();
        let Some(worker) = workers.find(|worker| worker.run() == Some(run)) else {
            return;
        };
        match &result {
            ProbeResult::NotRun(Failure::Unavailable(problem)) => runtime.lost(problem.clone(), call),
            // The container may have ended.
            ProbeResult::NotRun(Failure::Failed(_)) => self.listing.outdate(),
            ProbeResult::Succeeded(_) | ProbeResult::Failed(_) => {}
        }
        if worker.ended(result, call) {
            self.writer.touch(call.now);
        }
        if let Some(look) = &mut self.look {
            look.next = earlier(look.next, Some(worker.due()));
        }
    }

    pub(crate) fn written(&mut self, result: Result<Box<str>, WriteError>, call: &mut Call<'_>) {
        self.writer.written("NodePodProbe", result, call);
    }

    /// Does what is due.
    pub(crate) fn advance(&mut self, runtime: &Runtime, call: &mut Call<'_>) {
        if !self.look.is_some_and(|look| look.is_idle(call.now)) {
            self.run(runtime, call);
            self.look = Some(Look::at(&self.workers, call.now));
        }
        if let Some(node) = self.node.clone()
            && self.writer.is_due(call.now)
        {
            self.write(&node, call);
        }
    }

    fn run(&mut self, runtime: &Runtime, call: &mut Call<'_>) {
        let mut room = self.room();
        let workers = self.workers.iter_mut();
        let mut due: Vec<(&Key, &mut Worker)> =
            workers.filter(|(_, worker)| worker.is_due(call.now)).collect();
        if due.is_empty() || !runtime.is_available() {
            return;
        }
        if !self.listing.is_fresh(call.now) {
            return self.listing.begin(call);
        }
        // Those of one time stay in the order of their keys.
        due.sort_by_key(|(_, worker)| worker.due());
        for ((pod, _), worker) in due {
            if let Turn::Run(kind) = worker.turn(call.now)
                && room.take(kind, pod)
            {
                self.next_run.0 = self.next_run.0.wrapping_add(1);
                worker.begin(self.next_run, kind, call);
            }
        }
    }

    fn room(&self) -> Room {
        let mut room = Room {
            commands: COMMANDS,
            requests: REQUESTS,
            of_pods: BTreeMap::new(),
        };
        for ((pod, _), worker) in &self.workers {
            if let Some(kind) = worker.running() {
                room.take(kind, pod);
            }
        }
        room
    }

    fn write(&mut self, node: &NodePodProbeView, call: &mut Call<'_>) {
        let stored = self.writer.stored().map(Vec::as_slice);
        let results = |pod: &str, probe: &str| self.workers.get(&(pod.into(), probe.into()))?.result();
        let wanted = status::wanted(node, stored, &results);
        let patch = status::patch(&node.uid, stored, &wanted);
        self.writer.settle();
        if let Some(patch) = patch {
            self.writer.begin(&node.uid, wanted, call.now);
            call.emit(Effect::PatchNodePodProbeStatus {
                name: node.name.clone(),
                patch,
            });
        }
    }

    pub(crate) fn next_timer(&self, runtime: &Runtime) -> Option<Timestamp> {
        let mut next = self.look.and_then(|look| look.next);
        if self.look.is_some_and(|look| look.is_one_due) {
            next = earlier(next, self.listing.next_timer());
        }
        let written = self.writer.next_timer().filter(|_| self.node.is_some());
        earlier(next.filter(|_| runtime.is_available()), written)
    }
}

impl Look {
    fn at(workers: &BTreeMap<Key, Worker>, now: Timestamp) -> Self {
        let (mut next, mut is_one_due) = (None, false);
        for worker in workers.values().filter(|worker| worker.waits()) {
            if worker.due() > now {
                next = earlier(next, Some(worker.due()));
            } else {
                is_one_due = true;
            }
        }
        Self { next, is_one_due }
    }

    /// Is nothing due yet, and does nothing wait?
    fn is_idle(self, now: Timestamp) -> bool {
        !self.is_one_due && self.next.is_none_or(|next| next > now)
    }
}

/// A part of a period, which is the same for all probes of a pod and differs between pods.
fn share(period: Duration, uid: &str) -> Duration {
    let hash = u64::from(go_compat::hash::fnv1a_32(uid.as_bytes()));
    // UIDs that are alike have hashes whose first bits are.
    let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
    let thousandths = u32::try_from((mixed * 1000) >> 16).unwrap_or_default();
    period.saturating_mul(thousandths) / 1000
}

/// How many runs may begin.
struct Room {
    commands: usize,
    requests: usize,
    /// Commands that run, by UID of their pod.
    of_pods: BTreeMap<Box<str>, usize>,
}

impl Room {
    /// Takes a place, if there is one.
    fn take(&mut self, kind: Kind, pod: &str) -> bool {
        let places = match kind {
            Kind::Command => &mut self.commands,
            Kind::Request => &mut self.requests,
        };
        if *places == 0 {
            return false;
        }
        if kind == Kind::Command {
            let of_pod = self.of_pods.entry(pod.into()).or_default();
            if *of_pod >= COMMANDS_OF_POD {
                return false;
            }
            *of_pod = of_pod.saturating_add(1);
        }
        *places = places.saturating_sub(1);
        true
    }
}

/// What is stored of a probe, if that is a result.
fn find<'a>(stored: Option<&'a [PodProbeStatus]>, pod: &ProbedPod, probe: &str) -> Option<&'a ProbeState> {
    let pod = stored?.iter().find(|one| one.uid == pod.uid)?;
    let mut states = pod.probe_states.iter();
    states.find(|one| &*one.name == probe && one.state != State::None)
}
