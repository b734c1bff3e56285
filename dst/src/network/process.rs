//! What a manager process can know.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kruise_sim::{Method, Request};
use tokio::{sync::watch, time::Instant};

use crate::{cluster::Cluster, history::Watched};

/// Number of a process: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "manager {}", self.0)
    }
}

/// Newest version of each watched resource that a process must know of when it decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floors(pub [u64; Watched::COUNT]);

impl Floors {
    /// Of one resource.
    pub fn of(&self, of: Watched) -> u64 {
        self.0[of.index()]
    }
}

/// A request on its way.
#[derive(Debug)]
pub struct Sent {
    /// When it was sent.
    pub at: Instant,
    /// When its sender decided to send it: with the first request of that decision.
    pub decided: Instant,
    /// What its sender knew when it decided to send it, at least.
    pub floors: Floors,
    /// Is it part of a decision, or of what is told of one later?
    of_plan: bool,
    pub(super) given_up: AtomicBool,
}

/// A component that carries out a decision: from its first request until all its requests are answered.
#[derive(Debug, Default)]
struct Busy {
    in_flight: u32,
    /// When its last answer came.
    answered: Option<Instant>,
    since: Option<Instant>,
    floors: Floors,
    /// It repeats a request by itself then.
    again: Option<Instant>,
    /// Pods being created, and pods whose creation was answered.
    creating: (u32, u32),
}

/// A manager that was started.
#[derive(Debug)]
pub struct Process {
    dead: watch::Sender<bool>,
    /// What watches and lists have shown, and when.
    shown: [Vec<(Instant, u64)>; Watched::COUNT],
    /// Newest version of pods that the process itself wrote, or that its predecessors wrote before it began to lead.
    pub wrote: u64,
    busy: BTreeMap<String, Busy>,
    /// More pods were being created than had been created before in the same plan: how many, beside how many.
    pub hasty: Option<(u32, u32)>,
}

/// What was shown just now may have come after the decision.
const MARGIN: Duration = Duration::from_millis(2);

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}

impl Process {
    /// One that knows nothing.
    pub fn new() -> Self {
        Self {
            dead: watch::channel(false).0,
            shown: Default::default(),
            wrote: 0,
            busy: BTreeMap::new(),
            hasty: None,
        }
    }

    /// Off the network for ever.
    pub fn kill(&self) {
        self.dead.send_replace(true);
    }

    /// Is it off the network?
    pub fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// Turns true when it dies.
    pub fn death(&self) -> watch::Receiver<bool> {
        self.dead.subscribe()
    }

    /// It was shown everything up to a version.
    pub fn learns(&mut self, of: Watched, version: u64) {
        self.shown[of.index()].push((Instant::now(), version));
    }

    /// What it knows at least.
    ///
    /// Of sets and pods: what its watches have shown. Of pods also what was written by itself, or by others before it
    /// led: whoever acts must not forget its own actions, and a successor must look before it acts.
    fn floors(&self, agent: &str) -> Floors {
        let now = Instant::now();
        let mut floors = Watched::ALL.map(|of| {
            let shown = &self.shown[of.index()];
            let until = shown.partition_point(|(at, _)| *at + MARGIN <= now);
            shown
                .get(until.wrapping_sub(1))
                .map_or(0, |(_, version)| *version)
        });
        // That is of CloneSets; what a SidecarSet wrote its own oracle knows.
        if !agent.ends_with("sidecarset-controller") {
            let pods = &mut floors[Watched::Pods.index()];
            *pods = (*pods).max(self.wrote);
        }
        Floors(floors)
    }

    /// Notes a request. Those of one decision overlap, so the decision is not older than the first of them.
    pub fn sends(&mut self, agent: &str, request: &Request) -> Arc<Sent> {
        let floors = self.floors(agent);
        let now = Instant::now();
        let of_plan = is_of_a_plan(request);
        let (decided, floors) = if of_plan {
            let busy = self.busy.entry(agent.to_owned()).or_default();
            // What follows an answer is sent at the same instant.
            let follows = busy
                .answered
                .is_some_and(|at| now <= at + Duration::from_millis(1));
            let goes_on = busy.in_flight > 0 || follows || busy.again.is_some_and(|at| now <= at);
            if !goes_on {
                *busy = Busy {
                    floors,
                    since: Some(now),
                    ..Busy::default()
                };
            }
            busy.in_flight += 1;
            busy.creating.0 += u32::from(creates_pod(request));
            if busy.creating.0 > busy.creating.1 + 1 {
                self.hasty = Some(busy.creating);
            }
            (busy.since.unwrap_or(now), busy.floors)
        } else {
            (now, floors)
        };
        Arc::new(Sent {
            at: now,
            decided,
            floors,
            of_plan,
            given_up: AtomicBool::new(false),
        })
    }

    fn ends(&mut self, agent: &str, created: bool) {
        if let Some(busy) = self.busy.get_mut(agent) {
            if created {
                busy.creating = (busy.creating.0.saturating_sub(1), busy.creating.1 + 1);
            }
            busy.in_flight = busy.in_flight.saturating_sub(1);
            busy.answered = Some(Instant::now());
        }
    }

    /// A component was told to repeat its request in a second.
    pub fn waits_again(&mut self, agent: &str) {
        if let Some(busy) = self.busy.get_mut(agent) {
            busy.again = Some(Instant::now() + Duration::from_millis(1_010));
        }
    }
}

/// Status of sets and events are written by tasks of their own, later than decided.
fn is_of_a_plan(request: &Request) -> bool {
    let is_of_set = request.path.contains("/clonesets/") || request.path.contains("/sidecarsets/");
    let is_status = is_of_set && request.path.ends_with("/status");
    !(is_status || request.path.contains("/events"))
}

pub(super) fn creates_pod(request: &Request) -> bool {
    request.method == Method::Post && request.path.ends_with("/pods")
}

/// Somebody waits for an answer; once dropped, nobody does.
pub struct Waiting {
    cluster: Arc<Cluster>,
    process: ProcessId,
    agent: String,
    creates: bool,
    sent: Arc<Sent>,
}

impl Waiting {
    pub fn new(
        cluster: &Arc<Cluster>,
        process: ProcessId,
        agent: &str,
        request: &Request,
        sent: &Arc<Sent>,
    ) -> Self {
        Self {
            cluster: cluster.clone(),
            process,
            agent: agent.to_owned(),
            creates: creates_pod(request),
            sent: sent.clone(),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.sent.given_up.store(true, Ordering::Relaxed);
        if !self.sent.of_plan {
            return;
        }
        self.cluster.look(|state| {
            if let Some(process) = state.processes.get_mut(&self.process) {
                process.ends(&self.agent, self.creates);
            }
        });
    }
}
