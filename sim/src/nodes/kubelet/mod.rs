//! The agents of all nodes: they run pods, and report what runs.
//!
//! As on a real node there are two states: what runs, which only the agent has, and the pod's status, which it
//! patches whenever the two differ. Conditions of others are never touched; readiness gates are read from the stored
//! status at every reconcile, so that a pod is ready exactly when its containers are and every gate is open.
//!
//! * One patch per visible change, as the kubelet sends it: strategic, to `pods/status`, naming the pod's uid.
//! * Another image restarts only its own container: it is stopped, the image pulled, and started with a new id and one
//!   more restart.
//! * The main containers of a pod that a Job owns, and ephemeral ones, run to their end, as their commands say
//!   ([`command`]).
//! * A container whose environment is made of a ConfigMap or Secret that is not there waits for it.
//! * What kubelets of other versions do otherwise, a node does that is created with that version ([`version`]).
//! * Other resources are given where there is room, at once, and restart a container if its policy requires that.
//! * An agent with a new pod takes its status for what runs.

mod addresses;
mod command;
mod conditions;
mod config;
mod container;
mod containers;
mod daemon;
mod environment;
mod events;
mod images;
mod pod;
mod resize;
mod run;
mod spec;
mod status;
mod timings;
mod version;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) use self::addresses::Addresses;
use self::container::State;
pub(super) use self::containers::command_end;
use self::environment::Place;
use self::images::Pulls;
use self::pod::Pod;
pub(super) use self::pod::node_of;
use self::resize::Room;
use self::spec::{ContainerSpec, RestartPolicy, Role, containers};
use self::status::Phase;
pub use self::timings::Timings;
pub(super) use self::version::NEWEST;
use self::version::Version;
use super::Options;
use super::runtime::Runtimes;
use crate::object::{at, get_metadata, metadata_text};
use crate::scheduler::request::Amounts;
use crate::store::Key;
use crate::world::{Client, pod_path};

/// Seconds for the end of the containers of a pod that does not say.
const DEFAULT_GRACE: u64 = 30;

/// The agents of all nodes.
#[derive(Clone, Debug)]
pub(super) struct Kubelets {
    timings: Timings,
    pods: BTreeMap<Key, Pod>,
    /// Until when each node pulls images.
    busy: BTreeMap<String, Option<Timestamp>>,
    pub(super) addresses: Addresses,
    /// What each node has to give.
    allocatable: BTreeMap<String, Amounts>,
    /// Which version of the kubelet each node runs.
    versions: BTreeMap<String, Version>,
    /// Nodes on which a pod went or got less.
    freed: BTreeSet<String>,
    /// Whether OpenKruise's daemon runs on the nodes.
    daemon: bool,
    /// Whether they record events.
    events: bool,
    /// Kinds of controllers whose pods come to an end.
    jobs: &'static [&'static str],
}

impl Kubelets {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            daemon: options.daemon,
            events: options.events,
            jobs: options.jobs,
            timings: options.timings.clone(),
            pods: BTreeMap::new(),
            busy: BTreeMap::new(),
            allocatable: BTreeMap::new(),
            versions: BTreeMap::new(),
            freed: BTreeSet::new(),
            addresses: Addresses::default(),
        }
    }

    /// Forgets a pod that is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(pod) = self.pods.remove(key) {
            self.addresses.release(&pod.address);
            self.freed.insert(pod.node);
        }
    }

    /// Learns what a node has to give, and its version.
    pub(super) fn learn(&mut self, name: &str, node: &Value) {
        self.versions.insert(name.to_owned(), Version::of(node));
        let allocatable = Amounts::of_list(at(node, "/status/allocatable"));
        if self.allocatable.get(name) != Some(&allocatable) {
            self.allocatable.insert(name.to_owned(), allocatable);
            self.freed.insert(name.to_owned());
        }
    }

    /// Pods that did not get what they request, and may get it now.
    pub(super) fn retried(&mut self) -> Vec<Key> {
        let freed = std::mem::take(&mut self.freed);
        if freed.is_empty() {
            return Vec::new();
        }
        let waiting = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.refusal.is_some() && freed.contains(&pod.node));
        waiting.map(|(key, _)| key.clone()).collect()
    }

    /// Pods of a namespace with a container that waits for something that its environment is made of.
    pub(super) fn unconfigured(&self, namespace: &str) -> Vec<Key> {
        let waits = |one: &container::Container| matches!(one.state, State::Unconfigured { .. });
        let pods = self.pods.iter();
        let waiting =
            pods.filter(|(key, pod)| *key.namespace == *namespace && pod.containers.iter().any(waits));
        waiting.map(|(key, _)| key.clone()).collect()
    }

    /// Gives a pod's containers what they request, where they have something else.
    fn resize(&mut self, key: &Key, specs: &[ContainerSpec<'_>]) {
        let Some(known) = self.pods.get(key) else { return };
        if known
            .has
            .iter()
            .zip(specs)
            .all(|(has, spec)| has == spec.resources)
        {
            if let Some(known) = self.pods.get_mut(key) {
                known.refusal = None;
            }
            return;
        }
        let node = known.node.clone();
        let mut used = Amounts::default();
        let others = self
            .pods
            .iter()
            .filter(|(other, pod)| *other != key && pod.node == node);
        others.for_each(|(_, pod)| used.add(&pod.request));
        let Some(allocatable) = self.allocatable.get(&node) else {
            return;
        };
        let room = Room {
            allocatable,
            used: &used,
        };
        if self.pods.get_mut(key).is_some_and(|pod| pod.resize(specs, &room)) {
            self.freed.insert(node);
        }
    }

    /// A node does not answer any more: its agent reports all its pods anew when it does.
    pub(super) fn silence(&mut self, node: &str) {
        for pod in self.pods.values_mut().filter(|pod| pod.node == node) {
            pod.reported = None;
        }
    }

    /// Forgets a node that is gone: a new one of its name has no images.
    pub(super) fn forget_node(&mut self, node: &str) {
        self.busy.remove(node);
        self.allocatable.remove(node);
        self.versions.remove(node);
    }

    /// The version of the node that a pod was given.
    fn version(&self, pod: &Value) -> Version {
        let node = node_of(pod).unwrap_or_default();
        self.versions.get(node).copied().unwrap_or_default()
    }

    /// The containers of a pod as its node runs them.
    fn specs<'a>(&self, pod: &'a Value) -> Vec<ContainerSpec<'a>> {
        let mut specs = containers(pod, self.version(pod));
        for spec in specs.iter_mut().filter(|spec| spec.role == Role::Main) {
            spec.ends = command::ending(spec.object, pod, self.jobs);
        }
        specs
    }

    /// Brings a pod's containers towards its spec; returns when to reconcile again.
    pub(super) fn sync(
        &mut self,
        client: &mut Client<'_>,
        key: &Key,
        pod: &Value,
        runtimes: &mut Runtimes,
    ) -> Option<Timestamp> {
        let now = client.now;
        let node = node_of(pod)?.to_owned();
        let mut specs = self.specs(pod);
        let place = self.place(key, pod, &node);
        for spec in &mut specs {
            spec.missing = config::missing(client.api, &key.namespace, &spec.needs);
            spec.variables = environment::variables(client.api, spec.object, pod, &place);
        }
        known(
            &mut self.pods,
            &mut self.addresses,
            &self.timings,
            key,
            pod,
            &specs,
            now,
        );
        self.resize(key, &specs);
        let (images, registries, bytes) = runtimes.images(&node);
        let mut pulls = Pulls {
            images,
            registries,
            bytes,
            busy: self.busy.entry(node).or_default(),
        };
        let runtime = known(
            &mut self.pods,
            &mut self.addresses,
            &self.timings,
            key,
            pod,
            &specs,
            now,
        );
        runtime.advance(&specs, RestartPolicy::of(pod), &mut pulls, &self.timings, now);
        events::record(client, pod, runtime, &specs, self.events);
        if let Some(patch) = status::patch(runtime, &specs, pod, Phase::of(runtime, false), now) {
            let answer = client.strategic(&format!("{}/status", pod_path(key)), &patch);
            let is_taken = answer.is_some_and(|answer| answer.code == 200);
            // The daemon reads what was reported.
            let is_all = !(self.daemon && daemon::concerns(&specs));
            runtime.reported = (is_taken && is_all).then(|| client.api.revision());
        }
        let looks = if self.daemon {
            daemon::look(client, &pod_path(key), runtime, &specs, pod)
        } else {
            None
        };
        let wakes = runtime.wakes(&self.timings, now);
        wakes.into_iter().chain(looks).min()
    }

    /// Where a pod runs, as far as that is known.
    fn place(&mut self, key: &Key, pod: &Value, node: &str) -> Place {
        let known = self.pods.get(key).map(|known| known.address.as_str());
        let shown = || at(pod, "/status/podIP").and_then(Value::as_str);
        Place {
            address: known.or_else(shown).unwrap_or_default().to_owned(),
            host: self.addresses.of_node(node),
        }
    }

    /// Whether nothing happened to a pod since the agent's own report, which it agrees with.
    pub(super) fn has_reported(&self, key: &Key, pod: &Value) -> bool {
        let reported = self.pods.get(key).and_then(|known| known.reported);
        reported.is_some_and(|version| metadata_text(pod, "resourceVersion").parse() == Ok(version))
    }

    /// Stops a pod's containers, and removes the pod once they are stopped; returns when to reconcile again.
    pub(super) fn terminate(&mut self, client: &mut Client<'_>, key: &Key, pod: &Value) -> Option<Timestamp> {
        let now = client.now;
        let specs = self.specs(pod);
        let runtime = known(
            &mut self.pods,
            &mut self.addresses,
            &self.timings,
            key,
            pod,
            &specs,
            now,
        );
        let grace = get_metadata(pod, "deletionGracePeriodSeconds").as_u64();
        let stopped = runtime.stop(grace.unwrap_or_default(), &specs, &self.timings, now);
        events::record(client, pod, runtime, &specs, self.events);
        if let Some(patch) = status::patch(runtime, &specs, pod, Phase::of(runtime, stopped), now) {
            client.strategic(&format!("{}/status", pod_path(key)), &patch);
        }
        if stopped && !runtime.released {
            runtime.released = true;
            let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": runtime.uid}});
            client.delete(&pod_path(key), &options);
        }
        runtime.wakes(&self.timings, now)
    }

    /// Stops what still runs of a pod that somebody else has ended. Its phase stays. Returns when to reconcile again.
    pub(super) fn tear_down(&mut self, client: &mut Client<'_>, key: &Key, pod: &Value) -> Option<Timestamp> {
        let now = client.now;
        let phase = Phase::stored(pod)?;
        let specs = self.specs(pod);
        let runtime = known(
            &mut self.pods,
            &mut self.addresses,
            &self.timings,
            key,
            pod,
            &specs,
            now,
        );
        let grace = at(pod, "/spec/terminationGracePeriodSeconds").and_then(Value::as_u64);
        runtime.stop(grace.unwrap_or(DEFAULT_GRACE), &specs, &self.timings, now);
        events::record(client, pod, runtime, &specs, self.events);
        if let Some(patch) = status::patch(runtime, &specs, pod, phase, now) {
            client.strategic(&format!("{}/status", pod_path(key)), &patch);
        }
        runtime.wakes(&self.timings, now)
    }

    /// Ends a running container of a pod.
    pub(super) fn crash(
        &mut self,
        key: &Key,
        pod: &Value,
        name: &str,
        code: i64,
        reason: &str,
        now: Timestamp,
    ) {
        let policy = RestartPolicy::of(pod);
        if let Some(container) = self.container(key, pod, name) {
            container.crash(policy, code, reason, now);
        }
    }

    /// Makes a container's readiness probe pass or fail.
    pub(super) fn probe(&mut self, key: &Key, pod: &Value, name: &str, passes: bool) {
        if let Some(container) = self.container(key, pod, name) {
            container.unready = !passes;
        }
    }

    fn container(&mut self, key: &Key, pod: &Value, name: &str) -> Option<&mut container::Container> {
        let at = containers(pod, Version::default())
            .iter()
            .position(|spec| spec.name == name)?;
        let runtime = self.pods.get_mut(key)?;
        runtime.containers.get_mut(at)
    }
}

/// The state of a pod; that of another pod of the same name is dropped.
fn known<'a>(
    pods: &'a mut BTreeMap<Key, Pod>,
    addresses: &mut Addresses,
    timings: &Timings,
    key: &Key,
    pod: &Value,
    specs: &[ContainerSpec<'_>],
    now: Timestamp,
) -> &'a mut Pod {
    let uid = metadata_text(pod, "uid");
    if let Some(other) = pods.get(key).filter(|known| known.uid != uid) {
        addresses.release(&other.address);
        pods.remove(key);
    }
    let runtime = pods.entry(key.clone()).or_insert_with(|| {
        let mut runtime = Pod::new(pod, specs, timings, now);
        runtime.host = addresses.of_node(node_of(pod).unwrap_or_default());
        let shown = at(pod, "/status/podIP").and_then(Value::as_str);
        runtime.address = if at(pod, "/spec/hostNetwork") == Some(&Value::Bool(true)) {
            runtime.host.clone()
        } else {
            addresses.of_pod(shown)
        };
        runtime
    });
    runtime.admit(specs);
    runtime
}
