//! A node with a NodePodProbe: its containers answer probes, and an API server stores the status. What must hold at
//! every step is checked here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_agent_core::{
    Agent, Config, ContainerId, Effect, Event, EventNote, Failure, Handler, Life, ProbeResult, ProbeRun,
    ProbedContainer, ProbedContainers, RunId, WriteError,
};
use serde_json::{Value, json};

use crate::world::{START, millis, seconds, time};

pub struct World {
    agent: Agent,
    pub now: Timestamp,
    queue: BTreeMap<(Timestamp, u64), Event>,
    count: u64,
    /// The stored NodePodProbe; null if there is none.
    pub object: Value,
    version: u64,
    /// By pod and name, in the order of their creation. Each has its start.
    pub containers: BTreeMap<(String, String), Vec<ProbedContainer>>,
    /// What containers answer, by the words of handlers. Others succeed.
    pub answers: BTreeMap<String, ProbeResult>,
    /// How long a run takes.
    pub takes: Duration,
    /// How long a listing of containers takes.
    pub listing_takes: Duration,
    running: BTreeMap<RunId, ProbeRun>,
    pub most_running: usize,
    pub runs: Vec<(Timestamp, ProbeRun)>,
    /// Results that the agent got, and the containers that it was told of last.
    pub results: Vec<(ProbeRun, ProbeResult)>,
    pub listed: BTreeMap<(String, String), ProbedContainer>,
    pub listings: usize,
    pub cancelled: usize,
    pub is_up: bool,
    pub api_error: Option<WriteError>,
    is_writing: bool,
    pub patches: Vec<(Timestamp, Value)>,
    pub events: Vec<EventNote>,
}

/// A handler as text: its command, the path of its request, or its port.
pub fn words(handler: &Handler) -> String {
    match handler {
        Handler::Exec(command) => command.join(" "),
        Handler::Http { path, .. } => path.to_string(),
        Handler::Tcp { port, .. } => port.to_string(),
    }
}

pub fn succeeds(answer: &str) -> ProbeResult {
    ProbeResult::Succeeded(answer.into())
}

pub fn fails(answer: &str) -> ProbeResult {
    ProbeResult::Failed(answer.into())
}

/// A probe that runs a command, with more members.
pub fn exec(name: &str, command: &str, more: &Value) -> Value {
    let mut probe = json!({"exec": {"command": command.split(' ').collect::<Vec<_>>()}});
    merge(&mut probe, more);
    json!({"name": name, "containerName": "app", "probe": probe})
}

fn merge(object: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
}

pub fn pod(name: &str, probes: &[Value]) -> Value {
    json!({"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "IP": "10.0.0.9", "probes": probes})
}

impl World {
    /// A node whose agent has started and found its runtime, longer ago than a period.
    pub fn new() -> Self {
        let mut world = Self {
            agent: Agent::new(Config::new("n1")),
            now: time(START),
            queue: BTreeMap::new(),
            count: 0,
            object: Value::Null,
            version: 100,
            containers: BTreeMap::new(),
            answers: BTreeMap::new(),
            takes: millis(50),
            listing_takes: millis(20),
            running: BTreeMap::new(),
            most_running: 0,
            runs: Vec::new(),
            results: Vec::new(),
            listed: BTreeMap::new(),
            listings: 0,
            cancelled: 0,
            is_up: true,
            api_error: None,
            is_writing: false,
            patches: Vec::new(),
            events: Vec::new(),
        };
        world.restart();
        world.run(seconds(100));
        world
    }

    /// The process ends, its calls with it, and another one starts.
    pub fn restart(&mut self) {
        self.agent = Agent::new(Config::new("n1"));
        self.queue.clear();
        self.running.clear();
        self.is_writing = false;
        self.results.clear();
        self.listed.clear();
        self.deliver(Event::Started);
        self.show(Duration::ZERO);
    }

    fn later(&self, delay: Duration) -> Timestamp {
        self.now
            .checked_add(SignedDuration::try_from(delay).unwrap())
            .unwrap()
    }

    pub fn schedule(&mut self, delay: Duration, event: Event) {
        self.count += 1;
        self.queue.insert((self.later(delay), self.count), event);
    }

    // --- the manager

    /// The probes of the node.
    pub fn ask(&mut self, pods: &[Value]) {
        if self.object.is_null() {
            self.object = json!({"metadata": {"name": "n1", "uid": format!("uid-{}", self.version)}});
        }
        self.object["spec"] = json!({"podProbes": pods});
        self.version += 1;
        self.show(millis(10));
    }

    pub fn delete(&mut self) {
        self.object = Value::Null;
        self.version += 1;
        self.show(millis(10));
    }

    fn show(&mut self, delay: Duration) {
        let event = if self.object.is_null() {
            Event::NodePodProbeDeleted
        } else {
            self.object["metadata"]["resourceVersion"] = self.version.to_string().into();
            Event::NodePodProbe(Arc::new(serde_json::from_value(self.object.clone()).unwrap()))
        };
        self.schedule(delay, event);
    }

    // --- the kubelet

    /// A container starts, a second after it was created; what ran before it has ended.
    pub fn begin(&mut self, pod: &str, name: &str) -> String {
        self.end(pod, name);
        self.count += 1;
        let id = format!("c{}", self.count);
        let created = self.now;
        let container = ProbedContainer {
            pod: format!("uid-{pod}").into(),
            name: name.into(),
            container: ContainerId {
                runtime: "containerd".into(),
                id: id.clone().into(),
            },
            created,
            started: Some(created.checked_add(SignedDuration::from_secs(1)).unwrap()),
            life: Life::Running,
        };
        let key = (pod.to_owned(), name.to_owned());
        self.containers.entry(key).or_default().push(container);
        id
    }

    pub fn end(&mut self, pod: &str, name: &str) {
        let all = self.containers.get_mut(&(pod.to_owned(), name.to_owned()));
        if let Some(last) = all.and_then(|all| all.last_mut()) {
            last.life = Life::Ended;
        }
    }

    // --- time

    pub fn run(&mut self, duration: Duration) {
        let end = self.later(duration);
        let mut steps_at_once = 0;
        loop {
            let timer = self.agent.next_timer().map(|timer| timer.max(self.now));
            let event = self.queue.keys().next().map(|(time, _)| *time);
            let Some(next) = timer.into_iter().chain(event).min().filter(|next| *next <= end) else {
                break;
            };
            steps_at_once = if next == self.now { steps_at_once + 1 } else { 0 };
            assert!(steps_at_once < 10_000, "the agent never waits");
            self.now = next;
            let event = if event == Some(next) {
                self.queue.pop_first().unwrap().1
            } else {
                Event::Timer
            };
            self.deliver(event);
        }
        self.now = end;
    }

    fn deliver(&mut self, event: Event) {
        match &event {
            Event::ProbeEnded { run, result } => {
                let Some(run) = self.running.remove(run) else {
                    return;
                };
                self.results.push((run, result.clone()));
            }
            Event::ProbedContainersListed(Ok(containers)) => {
                let key = |one: &ProbedContainer| (one.pod.to_string(), one.name.to_string());
                self.listed
                    .extend(containers.iter().map(|one| (key(one), one.clone())));
            }
            Event::ProbesWritten(_) => self.is_writing = false,
            _ => {}
        }
        for effect in self.agent.handle(event, self.now) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::DetectRuntimes => {
                let found = if self.is_up {
                    Ok(["containerd".into()].into())
                } else {
                    Err("connection refused".into())
                };
                self.schedule(millis(10), Event::RuntimesDetected(found));
            }
            Effect::ListProbedContainers(wanted) => self.list(&wanted),
            Effect::RunProbe(run) => self.probe(run),
            Effect::CancelProbe(run) => {
                self.running.remove(&run).expect("it runs");
                self.cancelled += 1;
            }
            Effect::PatchNodePodProbeStatus { name, patch } => self.patch(&name, &patch),
            Effect::Event(note) => self.events.push(note),
            Effect::Health(_) | Effect::Log(..) => {}
            other => panic!("not for a probe: {other:?}"),
        }
    }

    fn list(&mut self, wanted: &ProbedContainers) {
        self.listings += 1;
        let newest = self.containers.values().filter_map(|all| all.last().cloned());
        let newest = newest.filter(|one| wanted.pods.contains(&one.pod));
        let shown = newest.map(|mut one| {
            let is_asked = one.life == Life::Running && !wanted.known.contains(&one.container);
            one.started = one.started.filter(|_| is_asked);
            one
        });
        let result = if self.is_up {
            Ok(shown.collect())
        } else {
            Err(Failure::Unavailable("connection refused".into()))
        };
        self.schedule(self.listing_takes, Event::ProbedContainersListed(result));
    }

    fn probe(&mut self, run: ProbeRun) {
        let mut all = self.containers.values().flatten();
        let container = all
            .find(|one| one.container == run.container)
            .expect("it was listed");
        let runs = container.life == Life::Running;
        let result = match (&run.handler, self.answers.get(&words(&run.handler))) {
            (Handler::Exec(_), _) if !self.is_up => {
                ProbeResult::NotRun(Failure::Unavailable("connection refused".into()))
            }
            (Handler::Exec(_), _) if !runs => ProbeResult::NotRun(Failure::Failed("it does not run".into())),
            (_, Some(answer)) => answer.clone(),
            (_, None) => succeeds(""),
        };
        let (takes, result) = if self.takes > run.timeout {
            (run.timeout, fails("out of time"))
        } else {
            (self.takes, result)
        };
        let event = Event::ProbeEnded { run: run.run, result };
        self.schedule(takes, event);
        self.runs.push((self.now, run.clone()));
        let is_twice = self
            .running
            .values()
            .any(|one| one.container == run.container && words(&one.handler) == words(&run.handler));
        assert!(!is_twice, "a probe runs once at a time");
        self.running.insert(run.run, run);
        self.most_running = self.most_running.max(self.running.len());
    }

    fn patch(&mut self, name: &str, patch: &Value) {
        assert_eq!(name, "n1");
        assert!(
            !std::mem::replace(&mut self.is_writing, true),
            "one write at a time"
        );
        self.patches.push((self.now, patch.clone()));
        let result = match &self.api_error {
            Some(error) => Err(error.clone()),
            None if self.object.is_null() => Err(WriteError::NotFound),
            None => match apply(&self.object, patch) {
                None => Err(WriteError::Conflict),
                Some(after) => {
                    assert_ne!(
                        after["status"], self.object["status"],
                        "a write that changes nothing: {patch}"
                    );
                    self.object = after;
                    self.version += 1;
                    self.show(millis(15));
                    Ok(self.version.to_string().into())
                }
            },
        };
        self.schedule(millis(10), Event::ProbesWritten(result));
    }

    // --- what can be seen

    /// The stored state of a probe.
    pub fn state(&self, pod: &str, probe: &str) -> Value {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let pods = list(&self.object["status"]["podProbeStatuses"]);
        let pod = pods
            .iter()
            .find(|one| one["name"] == pod)
            .cloned()
            .unwrap_or_default();
        let states = list(&pod["probeStates"]);
        states
            .into_iter()
            .find(|one| one["name"] == probe)
            .unwrap_or_default()
    }

    /// State and message of a probe: `Failed no`.
    pub fn says(&self, pod: &str, probe: &str) -> String {
        let state = self.state(pod, probe);
        let text = |member: &str| state[member].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("state"), text("message")).trim().to_owned()
    }

    /// When the runs began of a handler, in seconds after a time.
    pub fn times(&self, handler: &str, since: Timestamp) -> Vec<f64> {
        let runs = self
            .runs
            .iter()
            .filter(|(at, run)| *at >= since && words(&run.handler) == handler);
        runs.map(|(at, _)| at.duration_since(since).as_secs_f64())
            .collect()
    }

    /// Reasons and messages of events.
    pub fn told(&self) -> Vec<String> {
        let events = self.events.iter();
        events
            .map(|note| format!("{} {}", note.reason, note.message))
            .collect()
    }

    /// The words of handlers that run.
    pub fn under_way(&self) -> BTreeSet<String> {
        self.running.values().map(|run| words(&run.handler)).collect()
    }
}

/// An object after a JSON patch; none if a test fails, or there is no such place.
fn apply(object: &Value, patch: &Value) -> Option<Value> {
    let mut object = object.clone();
    for operation in patch.as_array()? {
        let path = operation["path"].as_str()?;
        let value = &operation["value"];
        let (parent, last) = path.rsplit_once('/')?;
        match operation["op"].as_str()? {
            "test" => (object.pointer(path)? == value).then_some(())?,
            "replace" => *object.pointer_mut(path)? = value.clone(),
            "remove" => {
                let list = object.pointer_mut(parent)?.as_array_mut()?;
                let index: usize = last.parse().ok()?;
                (index < list.len()).then(|| list.remove(index))?;
            }
            "add" if last == "-" => object.pointer_mut(parent)?.as_array_mut()?.push(value.clone()),
            "add" => object.pointer_mut(parent)?[last] = value.clone(),
            _ => return None,
        }
    }
    Some(object)
}
