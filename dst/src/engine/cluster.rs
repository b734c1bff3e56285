//! The cluster of one scenario: the world, what is true of it, which faults are active, and the oracles.
//!
//! Everything is behind one lock and runs on one thread; the lock is only what the types of the client demand.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_manager::Routes;
use kruise_sim::{CallId, Method, Outcome, Request, Response, WatchEvent, WebhookCall, WebhookReply, World};
use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    boot,
    cost::Costs,
    course::Course,
    faults::Faults,
    forgery::Altering,
    mirror::Mirror,
    oracles::Judges,
    process::{Process, ProcessId, Sent, creates_pod, is_dry_run},
    random::{Purpose, Random},
    report::{Counters, Reply, Trace, WRITES},
    resource::{PerResource, Resource},
    runtimes::Agents,
    verdict::{Judged, Violation},
    watching::Watching,
    webhooks::{self, Answer, Later},
    write::Write,
};

/// What a cluster is made of.
pub struct Setup {
    /// Seed of the scenario.
    pub seed: u64,
    /// Definitions of custom resources.
    pub definitions: Vec<Value>,
    /// Resources that managers watch, in the order in which watches are woken.
    pub resources: Vec<Resource>,
    /// Labels by which managers select objects.
    pub selectors: Vec<&'static str>,
    /// Do webhooks of all managers answer in turns?
    pub all_webhooks: bool,
    /// Who judges.
    pub judges: Judges,
    /// Whether they do.
    pub judged: Judged,
    /// So many percent of all requests of managers fail.
    pub failing: u8,
    /// What records the play.
    pub trace: Trace,
    /// What alters the play, if anything does.
    pub altering: Option<Altering>,
}

/// How far a request gets without waiting.
pub enum Progress {
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
    /// When the scenario began; times of steps count from here.
    pub start: Instant,
}

/// What the lock guards.
pub struct State {
    /// Objects and what acts on them.
    pub world: World,
    /// What is true.
    pub mirror: Mirror,
    /// Which faults are active.
    pub faults: Faults,
    /// Latencies of the network, and which requests a fault hits.
    pub random: Random,
    /// What happened.
    pub trace: Trace,
    /// How often.
    pub counters: Counters,
    /// When.
    pub course: Course,
    /// What is requested while nothing changes.
    pub costs: Costs,
    /// Managers that were started, by number.
    pub processes: BTreeMap<ProcessId, Process>,
    /// Stops a manager.
    pub stops: BTreeMap<ProcessId, watch::Sender<bool>>,
    /// Seconds that the clock of a manager is fast which starts now.
    pub skew: i64,
    /// And of those that have started.
    pub skews: BTreeMap<ProcessId, i64>,
    /// The agents of nodes.
    pub agents: Agents,
    /// Webhooks of managers that are up.
    pub routes: BTreeMap<ProcessId, Routes>,
    /// Which of them answers next; `None` if the first always does.
    turn: Option<usize>,
    /// Who judges.
    pub judges: Judges,
    /// Whether they do.
    pub judged: Judged,
    /// The first thing that must not happen.
    pub violation: Option<Violation>,
    /// What alters the play, if anything does.
    pub altering: Option<Altering>,
    /// How often watches of each resource were cut.
    pub cuts: PerResource<u64>,
    /// Open watches of each resource.
    pub watching: PerResource<Watching>,
    /// Length of each log when the watches were last woken.
    announced: PerResource<usize>,
    /// Components of the cluster that wait for a webhook.
    waiting: Vec<(CallId, Later)>,
    origin: Timestamp,
    start: Instant,
}

impl Cluster {
    /// A booted cluster with nodes, definitions and webhook configurations.
    pub fn new(setup: Setup) -> anyhow::Result<Arc<Self>> {
        let mut world = boot::world(setup.seed, &setup.definitions)?;
        let mirror = Mirror::new(&mut world, &setup.resources, setup.selectors, setup.judged);
        let start = Instant::now();
        let origin = boot::origin().max(world.now());
        let state = State {
            world,
            mirror,
            faults: Faults::new(setup.failing),
            course: Course::default(),
            costs: Costs::default(),
            random: Random::new(setup.seed, Purpose::CLUSTER),
            trace: setup.trace,
            counters: Counters::default(),
            processes: BTreeMap::new(),
            stops: BTreeMap::new(),
            skew: 0,
            skews: BTreeMap::new(),
            agents: Agents::default(),
            routes: BTreeMap::new(),
            turn: setup.all_webhooks.then_some(0),
            judges: setup.judges,
            judged: setup.judged,
            violation: None,
            altering: setup.altering,
            cuts: PerResource::default(),
            watching: PerResource::default(),
            announced: PerResource::default(),
            waiting: Vec::new(),
            origin,
            start,
        };
        let cluster = Self {
            state: Mutex::new(state),
            poke: Notify::new(),
            start,
        };
        cluster.with(|_| ());
        Ok(Arc::new(cluster))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with everything played up to now, and wakes the watches and the pump.
    pub fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        state.advance();
        let result = act(&mut state);
        state.sync();
        state.judge_newborn();
        state.announce();
        state.answer_agents();
        drop(state);
        self.poke.notify_one();
        result
    }

    /// Looks without playing on.
    pub fn look<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.lock())
    }

    /// Cuts all watches of a resource.
    pub fn cut(&self, of: Resource) {
        self.look(|state| {
            *state.cuts.entry(of) += 1;
            state.watching.entry(of).wake_all();
        });
    }

    /// Plays what is due, whenever it is, for ever.
    pub async fn pump(self: Arc<Self>) {
        loop {
            let (due, waiting) = self.with(|state| (state.next_due(), std::mem::take(&mut state.waiting)));
            for (id, later) in waiting {
                tokio::spawn(self.clone().receive(id, later));
            }
            let pause = due.unwrap_or(Duration::from_hours(1));
            let _ = tokio::time::timeout(pause, self.poke_after(pause)).await;
        }
    }

    /// Passes the answer of a webhook to a component.
    async fn receive(self: Arc<Self>, id: CallId, later: Later) {
        let reply = later.await;
        // Nobody here waits for the answer to a component's own request.
        self.with(|state| state.world.resume(id, reply));
    }

    /// Answers a request of a manager.
    pub async fn arrive(&self, process: ProcessId, agent: &str, request: &Request, sent: &Sent) -> Reply {
        let mut progress = self.with(|state| state.arrive(process, agent, request, sent));
        loop {
            match progress {
                Progress::Done(reply) => return reply,
                Progress::Waits(id, later) => {
                    let answer = later.await;
                    progress = self.with(|state| state.go_on(id, answer, process, agent, request, sent));
                }
            }
        }
    }

    /// Answers a request of a user.
    pub async fn request(&self, request: &Request) -> Reply {
        let mut progress = self.with(|state| state.begin(request));
        loop {
            match progress {
                Progress::Done(reply) => return reply,
                Progress::Waits(id, later) => {
                    let answer = later.await;
                    progress = self.with(|state| state.resume(id, answer));
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
}

impl State {
    /// What the clock of a manager shows that starts now.
    pub fn clock_of(&mut self, id: ProcessId) -> Timestamp {
        self.skews.insert(id, self.skew);
        let now = self.now();
        now.checked_add(SignedDuration::from_secs(self.skew))
            .unwrap_or(now)
    }

    /// What clocks show.
    pub fn now(&self) -> Timestamp {
        self.origin
            .checked_add(self.start.elapsed())
            .unwrap_or(self.origin)
    }

    /// Time since the scenario began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Who holds the lease.
    pub fn leader(&self) -> Option<ProcessId> {
        self.judges.leader().filter(|leader| !self.is_dead(*leader))
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
        let are_any = !calls.is_empty();
        for call in calls {
            let id = call.id;
            match self.call_webhook(call) {
                Answer::Now(reply) => {
                    // Nobody here waits for the answer to a component's own request.
                    let _nobody = self.world.resume(id, reply);
                }
                Answer::Later(later) => self.waiting.push((id, later)),
            }
        }
        are_any
    }

    fn call_webhook(&mut self, call: WebhookCall) -> Answer {
        let turn = self.turn.as_mut().map_or(0, |turn| {
            *turn += 1;
            turn.checked_rem(self.routes.len()).unwrap_or(0)
        });
        let routes = self.routes.values().nth(turn);
        let path = webhooks::path(&call).to_owned();
        let answer = webhooks::call(call, routes, &self.faults, &mut self.counters, &mut self.random);
        match &self.altering {
            Some(altering) => altering.answer(&path, answer),
            None => answer,
        }
    }

    /// Passes the answers of container runtimes to the agents that wait for them.
    fn answer_agents(&mut self) {
        for (id, answer) in self.world.runtime_answers() {
            self.agents.answered(id, answer);
        }
    }

    /// Do oracles judge the play?
    pub fn is_judged(&self) -> bool {
        self.judged == Judged::Yes
    }

    /// An oracle may have found something.
    pub fn found(&mut self, verdict: Option<Violation>) {
        if let Some(violation) = verdict.and_then(Violation::unless_collected) {
            self.violation.get_or_insert(violation);
        }
    }

    /// Has the oracles judge pods that were created.
    fn judge_newborn(&mut self) {
        if self.judged == Judged::Yes && self.violation.is_none() {
            let verdict = self.judges.judge_newborn(&self.mirror);
            self.found(verdict);
        }
    }

    /// Wakes the watches of what changed.
    fn announce(&mut self) {
        let resources: Vec<_> = self.mirror.resources().collect();
        for of in resources {
            let changes = &self.mirror.of(of).changes;
            let before = std::mem::replace(self.announced.entry(of), changes.len());
            if let Some(new @ [_, ..]) = changes.get(before..) {
                let names = new.iter().map(|change| &*change.name);
                self.watching.entry(of).wake(names);
            }
        }
    }

    /// What is not yet as it must be at the end.
    pub fn unfinished(&mut self) -> Result<(), String> {
        let paths: Vec<_> = self.judges.each().map(|one| one.reads).collect();
        let mut read = |path: &str| match self.answer(&Request::new(Method::Get, path, None)) {
            Reply::Response(Response { code: 200, body, .. }) => serde_json::from_slice(&body).ok(),
            _ => None,
        };
        let read: Vec<Option<Value>> = paths.into_iter().map(|path| read(path?)).collect();
        let (now, mut each) = (self.now(), self.judges.each().zip(&read));
        each.try_for_each(|(one, read)| {
            let read = read.as_ref().unwrap_or(&Value::Null);
            one.oracles.unfinished(&self.mirror, now, read)
        })
    }

    /// Does the scenario count, if so many writes are still to come?
    pub fn counts_with(&self, writes: u32) -> bool {
        self.counters.are_enough(WRITES.saturating_sub(writes)) && self.judges.count(&self.counters)
    }

    /// About how many writes are under way; `usually` where some subject cannot estimate its own.
    pub fn writes_to_come(&self, usually: u32) -> u32 {
        let mut each = self.judges.each();
        let sum: Option<usize> = each.try_fold(0, |sum, one| {
            Some(sum + one.oracles.writes_to_come(&self.mirror)?)
        });
        sum.map_or(usually, |sum| u32::try_from(sum).unwrap_or(u32::MAX))
    }

    fn sync(&mut self) {
        self.mirror.sync(&mut self.world);
    }

    /// How long until something is due.
    fn next_due(&self) -> Option<Duration> {
        let due = self.world.next_due()?;
        Some(Duration::try_from(due.duration_since(self.now())).unwrap_or(Duration::ZERO))
    }

    /// Answers a request of anybody, with the webhooks of the managers that are up.
    /// Nobody waits here: a webhook that needs a lookup, or is slow, fails.
    pub fn answer(&mut self, request: &Request) -> Reply {
        let mut progress = self.begin(request);
        loop {
            match progress {
                Progress::Done(reply) => return reply,
                Progress::Waits(id, _) => {
                    progress = self.resume(id, WebhookReply::Failed("context deadline exceeded".into()));
                }
            }
        }
    }

    fn begin(&mut self, request: &Request) -> Progress {
        let outcome = self.world.handle(request);
        self.follow(Some(outcome))
    }

    fn resume(&mut self, id: CallId, reply: WebhookReply) -> Progress {
        let outcome = self.world.resume(id, reply);
        self.follow(outcome)
    }

    fn follow(&mut self, mut outcome: Option<Outcome>) -> Progress {
        loop {
            let Some(now) = outcome else {
                return Progress::Done(Reply::Response(Response::text(500, "no answer\n")));
            };
            match now {
                Outcome::Respond(response) => return Progress::Done(Reply::Response(response)),
                Outcome::Watch(id) => {
                    let now = self.world.now();
                    let events = self.world.api().watch_events(id, now);
                    self.world.api().close_watch(id);
                    let expired = events
                        .iter()
                        .any(|event| matches!(event, WatchEvent::Line("ERROR", _)));
                    return Progress::Done(if expired { Reply::Expired } else { Reply::Watch });
                }
                Outcome::Call(call) => {
                    let id = call.id;
                    let reply = match self.call_webhook(*call) {
                        Answer::Now(reply) => reply,
                        Answer::Later(later) => return Progress::Waits(id, later),
                    };
                    outcome = self.world.resume(id, reply);
                }
            }
        }
    }

    /// Answers a request of a manager, and has the oracles judge it.
    fn arrive(&mut self, process: ProcessId, agent: &str, request: &Request, sent: &Sent) -> Progress {
        let marks = self.mirror.marks();
        let stale = self.mirror.stale_list(request, self.now());
        let progress = match stale.filter(|_| process.is_manager()) {
            Some(list) => Progress::Done(Reply::Response(list)),
            None => self.begin(request),
        };
        self.answered(progress, marks, process, agent, request, sent)
    }

    /// Goes on with a request of a manager that waited for a webhook.
    fn go_on(
        &mut self,
        id: CallId,
        answer: WebhookReply,
        process: ProcessId,
        agent: &str,
        request: &Request,
        sent: &Sent,
    ) -> Progress {
        let marks = self.mirror.marks();
        let progress = self.resume(id, answer);
        self.answered(progress, marks, process, agent, request, sent)
    }

    fn answered(
        &mut self,
        progress: Progress,
        marks: PerResource<usize>,
        process: ProcessId,
        agent: &str,
        request: &Request,
        sent: &Sent,
    ) -> Progress {
        let Progress::Done(reply) = progress else {
            return progress;
        };
        self.sync();
        let code = reply.code();
        self.counters.requests += u32::from(!request.path.contains("/leases"));
        self.trace
            .request(self.start.elapsed(), process, agent, request, &reply);
        if self.judged == Judged::Yes && creates_pod(request) && (code < 300 || code == 409) {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            self.judges
                .name_is_used(body["metadata"]["name"].as_str().unwrap_or_default());
        }
        if request.method != Method::Get && code < 300 && !is_dry_run(request) {
            let write = Write::new(process, agent, request, sent, marks, self.now(), self.judged);
            let write = write.by_clock(self.skews.get(&process).copied().unwrap_or_default());
            self.counters.wrote(&write);
            if !write.is_lease() && write.resource != "events" {
                self.course.wrote(self.start.elapsed());
            }
            if self.judged == Judged::Yes || write.is_lease() {
                let verdict = self.judges.judge(&write, &self.mirror, &mut self.processes);
                self.found(verdict);
            }
            self.after_write(process, &write);
        }
        Progress::Done(reply)
    }

    fn after_write(&mut self, process: ProcessId, write: &Write<'_>) {
        if write.is_lease() {
            return;
        }
        if let Some(left) = &mut self.faults.crash_after {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.faults.crash_after = None;
                self.counters.fired("crash after a write");
                self.kill(process);
            }
        }
    }

    /// Is this process off the network?
    pub fn is_dead(&self, process: ProcessId) -> bool {
        self.processes.get(&process).is_none_or(Process::is_dead)
    }

    /// Takes a process off the network for ever; its supervisor ends it.
    pub fn kill(&mut self, process: ProcessId) {
        self.routes.remove(&process);
        if let Some(process) = self.processes.get_mut(&process) {
            process.kill();
        }
    }
}
