//! The cluster of one history: the world, what is true of it, what is wrong with it at the moment, and who is watching
//! that nothing forbidden happens.
//!
//! Everything is behind one lock and runs on one thread; the lock is only what the types of the client ask for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use jiff::Timestamp;
use kruise::manager::Routes;
use kruise_sim::{CallId, Method, Outcome, Request, Response, WatchEvent, WebhookReply, World};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use crate::{
    boot,
    history::{Trouble, Watched, sidecars::Sidecars},
    mirror::Mirror,
    network::{Process, ProcessId, Sent},
    oracle::{Oracles, Violation, Write},
    play::Judged,
    random::{Purpose, Random},
    report::{Counters, Trace},
    webhooks::{self, Later, Said},
};

/// What a request leads to.
pub enum Reply {
    /// An answer.
    Response(Response),
    /// A watch is open.
    Watch,
    /// A watch from a version that is no longer kept.
    Expired,
}

/// How far a request gets without waiting.
pub enum Step {
    /// It is answered.
    Done(Reply),
    /// It waits for a webhook.
    Waits(CallId, Later),
}

/// A cluster that tasks share.
pub struct Cluster {
    state: Mutex<State>,
    /// There may be something due earlier than the pump knows.
    poke: Notify,
    /// When the history began; times of acts count from here.
    pub start: Instant,
    /// What clocks showed then.
    pub origin: Timestamp,
}

/// What the lock guards.
pub struct State {
    /// Objects and what lives on them.
    pub world: World,
    /// What is true.
    pub mirror: Mirror,
    /// What is wrong, and until when.
    pub troubles: Vec<(Instant, Trouble)>,
    /// Latencies and chances of the network.
    pub random: Random,
    /// What happened.
    pub trace: Trace,
    /// How often.
    pub counters: Counters,
    /// Managers that were started, by number.
    pub processes: BTreeMap<ProcessId, Process>,
    /// The newest manager of each slot.
    pub slots: BTreeMap<u8, ProcessId>,
    /// Tells a manager to stop.
    pub stops: BTreeMap<ProcessId, watch::Sender<bool>>,
    /// Webhooks of managers that are up.
    pub routes: BTreeMap<ProcessId, Routes>,
    /// Who watches.
    pub oracles: Oracles,
    /// Whether they say what they see.
    pub judged: Judged,
    /// The first thing that must not happen.
    pub violation: Option<Violation>,
    /// The leader dies after so many more writes.
    pub crash_after: Option<u32>,
    /// How often watches of each resource were cut.
    pub cuts: [u64; Watched::COUNT],
    /// Open watches of each resource, in the order in which they were opened. (The channels of the async runtime wake
    /// their receivers in an order that no seed decides.)
    pub watching: [Vec<Weak<Notify>>; Watched::COUNT],
    /// Length of each log when the watches were last woken.
    announced: [usize; Watched::COUNT],
    /// SidecarSets of this history.
    pub sidecars: Option<Sidecars>,
    /// Components of the cluster that wait for a webhook.
    waiting: Vec<(CallId, Later)>,
    /// The process that is cut off as long as the trouble says.
    pub isolated: Option<ProcessId>,
    origin: Timestamp,
    start: Instant,
}

impl Cluster {
    /// A booted cluster with nodes, definitions and webhook configurations.
    pub fn new(
        seed: u64,
        sidecars: Option<Sidecars>,
        trace: Trace,
        judged: Judged,
    ) -> anyhow::Result<Arc<Self>> {
        let origin = boot::origin();
        let mut world = boot::world(seed, sidecars.is_some())?;
        let mirror = Mirror::new(&mut world, judged);
        let start = Instant::now();
        let origin = origin.max(world.now());
        let state = State {
            world,
            mirror,
            troubles: Vec::new(),
            random: Random::new(seed, Purpose::Cluster),
            trace,
            counters: Counters::default(),
            processes: BTreeMap::new(),
            slots: BTreeMap::new(),
            stops: BTreeMap::new(),
            routes: BTreeMap::new(),
            oracles: Oracles::default(),
            judged,
            violation: None,
            crash_after: None,
            cuts: [0; Watched::COUNT],
            watching: Default::default(),
            announced: [0; Watched::COUNT],
            sidecars,
            waiting: Vec::new(),
            isolated: None,
            origin,
            start,
        };
        let cluster = Self {
            state: Mutex::new(state),
            poke: Notify::new(),
            start,
            origin,
        };
        cluster.with(|_| ());
        Ok(Arc::new(cluster))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with everything played up to now, and tells watches and pump what came of it.
    pub fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        state.advance();
        let result = act(&mut state);
        state.sync();
        state.judge_newborn();
        for of in Watched::ALL {
            let length = state.mirror.of(of).log.len();
            if std::mem::replace(&mut state.announced[of.index()], length) != length {
                state.wake(of);
            }
        }
        drop(state);
        self.poke.notify_one();
        result
    }

    /// Looks without playing on.
    pub fn look<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.lock())
    }

    /// Cuts all watches of a resource.
    pub fn cut(&self, of: Watched) {
        self.look(|state| {
            state.cuts[of.index()] += 1;
            state.wake(of);
        });
    }

    /// Plays what is due, whenever it is, for ever.
    pub async fn pump(self: Arc<Self>) {
        loop {
            let (due, waiting) = self.with(|state| (state.next_due(), std::mem::take(&mut state.waiting)));
            for (id, later) in waiting {
                tokio::spawn(self.clone().hear(id, later));
            }
            let pause = due.unwrap_or(Duration::from_hours(1));
            let _ = tokio::time::timeout(pause, self.poke_after(pause)).await;
        }
    }

    /// Tells a component what a webhook said.
    async fn hear(self: Arc<Self>, id: CallId, later: Later) {
        let reply = later.await;
        // A component's own request answers to nobody here.
        self.with(|state| state.world.resume(id, reply));
    }

    /// Answers a request of a manager.
    pub async fn arrive(&self, process: ProcessId, agent: &str, request: &Request, sent: &Sent) -> Reply {
        let mut step = self.with(|state| state.arrive(process, agent, request, sent));
        loop {
            match step {
                Step::Done(reply) => return reply,
                Step::Waits(id, later) => {
                    let said = later.await;
                    step = self.with(|state| state.goes_on(id, said, process, agent, request, sent));
                }
            }
        }
    }

    /// Answers a request of a user.
    pub async fn ask(&self, request: &Request) -> Reply {
        let mut step = self.with(|state| state.begin(request));
        loop {
            match step {
                Step::Done(reply) => return reply,
                Step::Waits(id, later) => {
                    let said = later.await;
                    step = self.with(|state| state.resume(id, said));
                }
            }
        }
    }

    /// A poke counts only if something is due sooner.
    async fn poke_after(&self, pause: Duration) {
        let until = Instant::now() + pause;
        loop {
            self.poke.notified().await;
            let (due, waits) = self.look(|state| (state.next_due(), !state.waiting.is_empty()));
            if waits || due.is_some_and(|due| Instant::now() + due < until) {
                return;
            }
        }
    }

    /// Milliseconds since the history began.
    pub fn elapsed(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

impl State {
    /// What clocks show.
    pub fn now(&self) -> Timestamp {
        self.origin
            .checked_add(self.start.elapsed())
            .unwrap_or(self.origin)
    }

    /// Time since the history began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Who holds the lease.
    pub fn leader(&self) -> Option<ProcessId> {
        self.oracles.leader().filter(|leader| !self.is_dead(*leader))
    }

    fn advance(&mut self) {
        let now = self.now();
        if now > self.world.now() || self.world.next_due().is_some_and(|due| due <= now) {
            self.world.advance(now);
            while self.answer_components() {
                self.world.advance(now);
            }
        }
        self.sync();
    }

    /// Answers the calls of webhooks that components of the cluster wait for; false if there are none.
    fn answer_components(&mut self) -> bool {
        let calls = self.world.calls();
        let is_asked = !calls.is_empty();
        for call in calls {
            let id = call.id;
            match webhooks::ask(self, call) {
                Said::Now(reply) => {
                    // A component's own request answers to nobody here.
                    let _nobody = self.world.resume(id, reply);
                }
                Said::Later(later) => self.waiting.push((id, later)),
            }
        }
        is_asked
    }

    /// Has the oracles judge pods that came to be, where there are SidecarSets.
    fn judge_newborn(&mut self) {
        if self.sidecars.is_some() && self.judged == Judged::Yes && self.violation.is_none() {
            self.violation = self.oracles.judge_newborn(&self.mirror);
        }
    }

    fn sync(&mut self) {
        self.mirror.sync(&mut self.world);
    }

    /// How long until something is due.
    fn next_due(&self) -> Option<Duration> {
        let due = self.world.next_due()?;
        Some(Duration::try_from(due.duration_since(self.now())).unwrap_or(Duration::ZERO))
    }

    /// Is this wrong now?
    pub fn troubled<R>(&self, find: impl Fn(&Trouble) -> Option<R>) -> Option<R> {
        let now = Instant::now();
        self.troubles
            .iter()
            .filter(|(until, _)| *until > now)
            .find_map(|(_, trouble)| find(trouble))
    }

    /// Answers a request of anybody, with the webhooks of the managers that are up.
    /// Nobody here waits: what a webhook would have to ask for, or is late to say, is not said.
    pub fn answer(&mut self, request: &Request) -> Reply {
        let mut step = self.begin(request);
        loop {
            match step {
                Step::Done(reply) => return reply,
                Step::Waits(id, _) => {
                    step = self.resume(id, WebhookReply::Failed("context deadline exceeded".into()));
                }
            }
        }
    }

    fn begin(&mut self, request: &Request) -> Step {
        let outcome = self.world.handle(request);
        self.follow(Some(outcome))
    }

    fn resume(&mut self, id: CallId, reply: WebhookReply) -> Step {
        let outcome = self.world.resume(id, reply);
        self.follow(outcome)
    }

    fn follow(&mut self, mut outcome: Option<Outcome>) -> Step {
        loop {
            let Some(now) = outcome else {
                return Step::Done(Reply::Response(Response::text(500, "no answer\n")));
            };
            match now {
                Outcome::Respond(response) => return Step::Done(Reply::Response(response)),
                Outcome::Watch(id) => {
                    let now = self.world.now();
                    let events = self.world.api().watch_events(id, now);
                    self.world.api().close_watch(id);
                    let expired = events
                        .iter()
                        .any(|event| matches!(event, WatchEvent::Line("ERROR", _)));
                    return Step::Done(if expired { Reply::Expired } else { Reply::Watch });
                }
                Outcome::Call(call) => {
                    let id = call.id;
                    let reply = match webhooks::ask(self, *call) {
                        Said::Now(reply) => reply,
                        Said::Later(later) => return Step::Waits(id, later),
                    };
                    outcome = self.world.resume(id, reply);
                }
            }
        }
    }

    /// Answers a request of a manager, and has the oracles judge it.
    fn arrive(&mut self, process: ProcessId, agent: &str, request: &Request, sent: &Sent) -> Step {
        let marks = self.mirror.marks();
        let step = match self.mirror.stale_list(request, self.now()) {
            Some(list) => Step::Done(Reply::Response(list)),
            None => self.begin(request),
        };
        self.answered(step, marks, process, agent, request, sent)
    }

    /// Goes on with a request of a manager for which a webhook was waited.
    fn goes_on(
        &mut self,
        id: CallId,
        said: WebhookReply,
        process: ProcessId,
        agent: &str,
        request: &Request,
        sent: &Sent,
    ) -> Step {
        let marks = self.mirror.marks();
        let step = self.resume(id, said);
        self.answered(step, marks, process, agent, request, sent)
    }

    fn answered(
        &mut self,
        step: Step,
        marks: [usize; Watched::COUNT],
        process: ProcessId,
        agent: &str,
        request: &Request,
        sent: &Sent,
    ) -> Step {
        let Step::Done(reply) = step else { return step };
        self.sync();
        let code = match &reply {
            Reply::Response(response) => response.code,
            Reply::Watch | Reply::Expired => 200,
        };
        self.trace
            .request(self.start.elapsed(), process, agent, request, &reply);
        let creates = request.method == Method::Post && request.path.ends_with("/pods");
        if self.judged == Judged::Yes && creates && (code < 300 || code == 409) {
            let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
            self.oracles
                .name_is_used(body["metadata"]["name"].as_str().unwrap_or_default());
        }
        if request.method != Method::Get && code < 300 {
            let write = Write::new(process, agent, request, sent, marks, self.now(), self.judged);
            self.counters.wrote(&write);
            if self.judged == Judged::Yes || write.is_lease() {
                let verdict = self.oracles.judge(&write, &self.mirror, &mut self.processes);
                if let (Some(violation), None) = (verdict, &self.violation) {
                    self.violation = Some(violation);
                }
            }
            self.after_write(process, &write);
        }
        Step::Done(reply)
    }

    fn after_write(&mut self, process: ProcessId, write: &Write<'_>) {
        if write.is_lease() {
            return;
        }
        if let Some(left) = &mut self.crash_after {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.crash_after = None;
                self.counters.fired("crash after a write");
                self.kill(process);
            }
        }
    }

    /// Wakes the watches of a resource.
    fn wake(&mut self, of: Watched) {
        let watching = &mut self.watching[of.index()];
        watching.retain(|watch| watch.upgrade().is_some());
        watching
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|watch| watch.notify_one());
    }

    /// Takes a process off the network for ever; its supervisor ends it.
    pub fn kill(&mut self, process: ProcessId) {
        self.routes.remove(&process);
        if let Some(process) = self.processes.get_mut(&process) {
            process.kill();
        }
    }
}
