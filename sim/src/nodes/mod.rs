//! Simulated nodes: stages say what happens to nodes and pods, agents do it.
//!
//! Every change of a node or pod is held against the stages ([`stage`]):
//! * stages with a continuous step (`Sync`, `Terminate`, `TearDown`) run at every change while they match, and when
//!   their timers are due;
//! * of the others that match, one is drawn; it runs once, after its delay, if it still matches then.
//!
//! A node whose condition `Ready` is `Unknown` does not answer: its agent stands still, and reports what became of
//! its pods when the condition has another status. Nobody but the one who set such a condition ends it.
//!
//! What a step does is the business of [`kubelet`]; what others may do with a node's containers and images, that of
//! [`runtime`]. All draws come from the seed and the object, never from the order of events.

mod identity;
mod initialize;
mod kubelet;
mod options;
pub mod runtime;
mod stage;
#[cfg(feature = "fuzzing")]
pub(crate) use stage::jq;
#[cfg(test)]
mod tests;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::identity::draw;
use self::kubelet::Kubelets;
pub use self::kubelet::Timings;
pub use self::options::Options;
use self::runtime::Runtimes;
pub use self::stage::{DEFAULT_STAGES, StageError};
use self::stage::{Input, Kind, Next, Stage, Step};
use crate::api::Api;
use crate::object::{at, finalizers, metadata_text};
use crate::store::Key;
use crate::world::{Actor, Client, Feed, Timers, pod_path};

/// An object that a stage is about to run for: kind, key, and the stage's place in the file.
type Run = (Kind, Key, usize);

/// All nodes of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    stages: Vec<Arc<Stage>>,
    seed: u64,
    node_feed: Feed,
    pod_feed: Feed,
    /// What environments are made of.
    config_feeds: [Feed; 2],
    /// Nodes that exist and whose agents answer.
    up: BTreeSet<String>,
    /// Where pods are.
    placed: BTreeMap<Key, String>,
    timers: Timers<Run>,
    kubelets: Kubelets,
    runtimes: Runtimes,
}

impl Nodes {
    pub(crate) fn new(options: &Options, seed: u64) -> Result<Self, StageError> {
        Ok(Self {
            stages: Stage::read(&options.stages)?.into_iter().map(Arc::new).collect(),
            seed,
            node_feed: Feed::new("", "nodes"),
            pod_feed: Feed::new("", "pods"),
            config_feeds: ["configmaps", "secrets"].map(|plural| Feed::new("", plural)),
            up: BTreeSet::new(),
            placed: BTreeMap::new(),
            timers: Timers::new(),
            kubelets: Kubelets::new(options),
            runtimes: Runtimes::new(options.runtime.clone()),
        })
    }

    fn object(&self, api: &Api, kind: Kind, key: &Key) -> Option<Arc<Value>> {
        let feed = match kind {
            Kind::Node => &self.node_feed,
            Kind::Pod => &self.pod_feed,
        };
        feed.object(api, key)
    }

    /// A node changed: its agent starts or stops, and with it all its pods.
    fn node(&mut self, api: &mut Api, key: &Key, now: Timestamp) {
        let name = key.name.to_string();
        let object = self.object(api, Kind::Node, key);
        let answers = object.as_ref().is_some_and(|node| is_reachable(node)) && !self.runtimes.is_away(&name);
        let appeared = answers && self.up.insert(name.clone());
        if !answers && self.up.remove(&name) {
            self.kubelets.silence(&name);
        }
        if let Some(node) = object {
            self.kubelets.learn(&name, &node);
            self.runtimes.learn(&name);
        } else {
            self.kubelets.forget_node(&name);
            self.runtimes.forget(&name);
        }
        self.reconcile(api, Kind::Node, key, now);
        if appeared {
            self.resume(api, &name, now);
        }
    }

    /// The agent of a node goes on with its pods.
    fn resume(&mut self, api: &mut Api, name: &str, now: Timestamp) {
        let waiting = self.placed.iter().filter(|(_, node)| **node == name);
        let waiting: Vec<Key> = waiting.map(|(pod, _)| pod.clone()).collect();
        for pod in waiting {
            self.reconcile(api, Kind::Pod, &pod, now);
        }
    }

    /// Kubelets see what calls of runtimes and faults have changed.
    fn notice(&mut self, api: &mut Api, now: Timestamp) {
        for name in self.runtimes.take_returned() {
            let node = self.object(api, Kind::Node, &Key::new("", &name));
            if node.is_some_and(|node| is_reachable(&node)) && self.up.insert(name.clone()) {
                self.resume(api, &name, now);
            }
        }
        for key in self.runtimes.take_stirred() {
            self.resync(api, &key, now);
        }
    }

    /// Holds an object against the stages.
    fn reconcile(&mut self, api: &mut Api, kind: Kind, key: &Key, now: Timestamp) {
        let Some(object) = self.object(api, kind, key) else {
            for index in 0..self.stages.len() {
                self.timers.set((kind, key.clone(), index), None);
            }
            if kind == Kind::Pod {
                self.placed.remove(key);
                self.kubelets.forget(key);
            }
            return;
        };
        if kind == Kind::Pod {
            let Some(node) = kubelet::node_of(&object) else {
                return;
            };
            self.placed.insert(key.clone(), node.to_owned());
            if !self.up.contains(node) {
                return;
            }
        }
        let input = Input::new(&object);
        let drawn = self.drawn(kind, &input);
        for index in 0..self.stages.len() {
            let Some(stage) = self.stages.get(index).filter(|stage| stage.kind == kind) else {
                continue;
            };
            let run = (kind, key.clone(), index);
            let continuous = stage.is_continuous();
            let wanted = if continuous {
                stage.matches(kind, &input)
            } else {
                drawn == Some(index)
            };
            if !wanted {
                self.timers.set(run, None);
                continue;
            }
            if stage.is_sync() && self.kubelets.has_reported(key, &object) {
                continue;
            }
            let delay = stage.delay(|| self.draw(&object, &stage.name));
            if continuous && delay.is_zero() {
                self.run(api, &run, &object, now);
            } else if !self.timers.has(&run) {
                self.timers.set(run, now.checked_add(delay).ok());
            }
        }
    }

    /// The stage that an object enters next, of those that run once.
    fn drawn(&self, kind: Kind, input: &Input<'_>) -> Option<usize> {
        let all = self.stages.iter().enumerate();
        let matching: Vec<(usize, &Arc<Stage>)> = all
            .filter(|(_, stage)| !stage.is_continuous() && stage.matches(kind, input))
            .collect();
        let total: u64 = matching.iter().map(|(_, stage)| stage.weight).sum();
        if total == 0 {
            return matching.first().map(|(index, _)| *index);
        }
        let mut left = self.draw(input.object, "weight") % total;
        let picked = matching.iter().find(|(_, stage)| {
            let here = left < stage.weight;
            left = left.saturating_sub(stage.weight);
            here
        });
        picked.map(|(index, _)| *index)
    }

    /// Whether somebody does what stages say: pods have an agent only while their node answers.
    fn is_served(&self, kind: Kind, object: &Value) -> bool {
        kind == Kind::Node || kubelet::node_of(object).is_some_and(|node| self.up.contains(node))
    }

    fn draw(&self, object: &Value, purpose: &str) -> u64 {
        draw(self.seed, &[metadata_text(object, "uid"), purpose])
    }

    /// Runs a stage whose time has come, if it still matches.
    fn play(&mut self, api: &mut Api, run: &Run, now: Timestamp) {
        let (kind, key, index) = run;
        let object = self
            .object(api, *kind, key)
            .filter(|object| self.is_served(*kind, object));
        let stage = self.stages.get(*index);
        if let Some(object) =
            object.filter(|object| stage.is_some_and(|stage| stage.matches(*kind, &Input::new(object))))
        {
            self.run(api, run, &object, now);
        }
    }

    /// Runs a stage that matches.
    fn run(&mut self, api: &mut Api, run: &Run, object: &Value, now: Timestamp) {
        let (kind, key, index) = run;
        let Some(stage) = self.stages.get(*index).cloned() else {
            return;
        };
        let (node, path) = match kind {
            Kind::Node => (key.name.as_ref(), format!("/api/v1/nodes/{}", key.name)),
            Kind::Pod => (kubelet::node_of(object).unwrap_or_default(), pod_path(key)),
        };
        let user = &format!("system:node:{node}");
        let mut client = Client { api, user, now };
        write(&mut client, &path, object, &stage.next);
        let wakes = stage
            .next
            .step
            .as_ref()
            .and_then(|step| self.step(&mut client, key, object, step));
        self.timers.set(run.clone(), wakes);
    }

    /// Runs a step; returns when a continuous step is to run again.
    fn step(&mut self, client: &mut Client<'_>, key: &Key, object: &Value, step: &Step) -> Option<Timestamp> {
        let now = client.now;
        match step {
            Step::Initialize => {
                initialize::node(client, &mut self.kubelets.addresses, object);
                None
            }
            Step::Sync => self.kubelets.sync(client, key, object, &mut self.runtimes),
            Step::Terminate => self.kubelets.terminate(client, key, object),
            Step::TearDown => self.kubelets.tear_down(client, key, object),
            Step::Crash {
                container,
                exit_code,
                reason,
            } => {
                self.kubelets
                    .crash(key, object, container, *exit_code, reason, now);
                self.resync(client.api, key, now)
            }
            Step::Readiness { container, passes } => {
                self.kubelets.probe(key, object, container, *passes);
                self.resync(client.api, key, now)
            }
        }
    }

    /// What runs has changed, the pod has not: its agent reconciles it again.
    fn resync(&mut self, api: &mut Api, key: &Key, now: Timestamp) -> Option<Timestamp> {
        for index in 0..self.stages.len() {
            if self.stages.get(index).is_some_and(|stage| stage.is_continuous()) {
                self.play(api, &(Kind::Pod, key.clone(), index), now);
            }
        }
        None
    }
}

impl Actor for Nodes {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn reseed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        for key in self.node_feed.poll(api) {
            self.node(api, &key, now);
        }
        for key in self.pod_feed.poll(api) {
            self.reconcile(api, Kind::Pod, &key, now);
        }
        let changed = self.config_feeds.iter_mut().flat_map(|feed| feed.poll(api));
        let namespaces: BTreeSet<Arc<str>> = changed.map(|key| key.namespace).collect();
        for namespace in namespaces {
            for key in self.kubelets.unconfigured(&namespace) {
                self.resync(api, &key, now);
            }
        }
        for key in self.kubelets.retried() {
            self.resync(api, &key, now);
        }
        self.notice(api, now);
        while let Some(run) = self.timers.pop(now) {
            self.play(api, &run, now);
        }
        self.answer_due(api, now);
    }

    fn due(&self) -> Option<Timestamp> {
        let times = [self.timers.next(), self.runtimes.due()];
        times.into_iter().flatten().min()
    }
}

/// Whether the agent of a node answers: as long as nobody says that its state is unknown.
fn is_reachable(node: &Value) -> bool {
    let conditions = at(node, "/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|one| one.get("type") == Some(&"Ready".into()));
    ready.is_none_or(|ready| ready.get("status") != Some(&"Unknown".into()))
}

/// What a stage writes by itself: event, finalizers, deletion, patches.
fn write(client: &mut Client<'_>, path: &str, object: &Value, next: &Next) {
    if let Some(event) = &next.event {
        client.event(object, "kubelet", &event.kind, &event.reason, &event.message);
    }
    if let Some(change) = &next.finalizers {
        let had = finalizers(object);
        let mut kept: Vec<&str> = had
            .iter()
            .copied()
            .filter(|one| !change.empty && !change.remove.iter().any(|gone| gone == one))
            .collect();
        for added in &change.add {
            if !kept.contains(&added.as_str()) {
                kept.push(added);
            }
        }
        if kept != had {
            client.merge(path, &json!({"metadata": {"finalizers": kept}}));
        }
    }
    if next.delete {
        client.delete(path, &json!({"gracePeriodSeconds": 0}));
    }
    for patch in &next.patches {
        let body = match patch.template.render(object, client.now) {
            Ok(body) => body,
            Err(why) => {
                client.event(object, "kubelet", "Warning", "StageFailed", &why);
                continue;
            }
        };
        let body = if patch.root.is_empty() {
            body
        } else {
            json!({patch.root.as_str(): body})
        };
        let target = match patch.subresource.as_str() {
            "" => path.to_owned(),
            subresource => format!("{path}/{subresource}"),
        };
        client.patch(patch.media_type, &target, &body);
    }
}
