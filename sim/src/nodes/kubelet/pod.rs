//! A pod on its node: its containers, and in which order they go.
//!
//! * Nothing begins before the sandbox is there.
//! * Init containers run one after the other; a sidecar among them lets the next begin once it is started.
//! * Ephemeral containers begin as soon as the sandbox is there, and hold up nothing.
//! * When the main containers are over, the sidecars and the ephemeral ones are stopped.
//! * On termination the main containers are stopped first, then the sidecars, all within one grace period.

use jiff::Timestamp;
use serde_json::Value;

use super::Timings;
use super::container::{Container, State};
use super::images::Pulls;
use super::resize::{self, Refusal, Room};
use super::run::{Exit, Run};
use super::spec::{ContainerSpec, RestartPolicy, Role};
use crate::nodes::time::later;
use crate::object::{at, metadata_text};
use crate::scheduler::request::Amounts;

/// The node that a pod was given.
pub(in crate::nodes) fn node_of(pod: &Value) -> Option<&str> {
    at(pod, "/spec/nodeName")?.as_str()
}

/// The state of a pod on its node.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) uid: String,
    pub(super) address: String,
    pub(super) host: String,
    /// When the node saw the pod first.
    pub(super) start: Timestamp,
    /// When the sandbox is there.
    sandbox: Timestamp,
    /// In the order of [`super::spec::containers`].
    pub(super) containers: Vec<Container>,
    /// The end of the grace period, once the pod is being stopped.
    pub(super) deadline: Option<Timestamp>,
    /// The deletion of the pod was sent to the API.
    pub(super) released: bool,
    pub(super) node: String,
    /// What each container has.
    pub(super) has: Vec<Value>,
    /// Why they do not get what they request.
    pub(super) refusal: Option<Refusal>,
    /// What all of them have.
    pub(super) request: Amounts,
    /// When OpenKruise's daemon checks it.
    pub(super) looks: Option<Timestamp>,
    /// The version that the newest report of the pod's state made, if nothing else is to be done for that.
    pub(super) reported: Option<u64>,
}

impl Pod {
    pub(super) fn new(pod: &Value, specs: &[ContainerSpec<'_>], timings: &Timings, now: Timestamp) -> Self {
        let status = pod.get("status").unwrap_or(&Value::Null);
        let time = |value: Option<&Value>| value.and_then(Value::as_str).and_then(|text| text.parse().ok());
        let start = time(status.get("startTime"));
        let has: Vec<Value> = specs.iter().map(|spec| given(spec, status)).collect();
        let restored = specs
            .iter()
            .map(|spec| restore(spec, status).unwrap_or_else(|| Container::new(spec.name, spec.role)));
        Self {
            uid: metadata_text(pod, "uid").to_owned(),
            address: String::new(),
            host: String::new(),
            start: start.unwrap_or(now),
            sandbox: later(
                now,
                if start.is_some() {
                    std::time::Duration::ZERO
                } else {
                    timings.sandbox
                },
            ),
            containers: restored.collect(),
            deadline: None,
            released: false,
            node: node_of(pod).unwrap_or_default().to_owned(),
            request: Amounts::of_pod(&resize::as_pod(&has, specs)),
            has,
            refusal: None,
            looks: None,
            reported: None,
        }
    }

    /// Ephemeral containers that were added since.
    pub(super) fn admit(&mut self, specs: &[ContainerSpec<'_>]) {
        for spec in specs.iter().skip(self.containers.len()) {
            self.containers.push(Container::new(spec.name, spec.role));
            self.has.push(spec.resources.clone());
        }
    }

    /// Gives containers what they request, if there is room. Returns whether the pod has less than before.
    pub(super) fn resize(&mut self, specs: &[ContainerSpec<'_>], room: &Room<'_>) -> bool {
        let requested = resize::requested(specs);
        let request = Amounts::of_pod(&resize::as_pod(&requested, specs));
        self.refusal = room.refuses(&request);
        if self.refusal.is_some() {
            return false;
        }
        resize::give(&mut self.has, &mut self.containers, specs);
        let shrinks = ["cpu", "memory"]
            .iter()
            .any(|name| request.get(name) < self.request.get(name));
        self.request = request;
        shrinks
    }

    /// Plays what is due.
    pub(super) fn advance(
        &mut self,
        specs: &[ContainerSpec<'_>],
        policy: RestartPolicy,
        pulls: &mut Pulls<'_>,
        timings: &Timings,
        now: Timestamp,
    ) {
        if now < self.sandbox {
            return;
        }
        let mut blocked = false;
        for (container, spec) in self.containers.iter_mut().zip(specs) {
            if blocked && container.role != Role::Ephemeral && container.state == State::Waiting {
                continue;
            }
            container.advance(spec, policy, pulls, timings, now);
            blocked |= match container.role {
                Role::Init => !container.has_succeeded(),
                Role::Sidecar => !container.is_started(now),
                Role::Main | Role::Ephemeral => false,
            };
        }
        if self.is_over() {
            self.stop_sidecars(specs, timings, later(now, timings.container_stop), now);
        }
    }

    /// Stops everything within so many seconds; true once nothing is alive.
    pub(super) fn stop(
        &mut self,
        grace: u64,
        specs: &[ContainerSpec<'_>],
        timings: &Timings,
        now: Timestamp,
    ) -> bool {
        let requested = later(now, std::time::Duration::from_secs(grace));
        let deadline = self.deadline.map_or(requested, |earlier| earlier.min(requested));
        self.deadline = Some(deadline);
        for (container, spec) in self.containers.iter_mut().zip(specs) {
            if container.role != Role::Sidecar {
                container.stop(timings.container_stop + spec.pre_stop, deadline, now);
            }
        }
        let mains_alive = |one: &Container| one.role != Role::Sidecar && one.is_alive();
        if !self.containers.iter().any(mains_alive) {
            self.stop_sidecars(specs, timings, deadline, now);
        }
        !self.containers.iter().any(Container::is_alive)
    }

    fn stop_sidecars(
        &mut self,
        specs: &[ContainerSpec<'_>],
        timings: &Timings,
        deadline: Timestamp,
        now: Timestamp,
    ) {
        for (container, spec) in self.containers.iter_mut().zip(specs) {
            if matches!(container.role, Role::Sidecar | Role::Ephemeral) {
                container.stop(timings.container_stop + spec.pre_stop, deadline, now);
            }
        }
    }

    /// All main containers ended and none begins again, or an init container failed for good.
    pub(super) fn is_over(&self) -> bool {
        let mut mains = self.containers.iter().filter(|one| one.role == Role::Main);
        let mut inits = self.containers.iter().filter(|one| one.role == Role::Init);
        mains.all(Container::is_over) || inits.any(|one| one.is_over() && !one.has_succeeded())
    }

    /// Whether the main containers may run.
    pub(super) fn is_initialized(&self) -> bool {
        self.containers.iter().all(|one| match one.role {
            Role::Init => one.has_succeeded(),
            Role::Sidecar => has_run(one),
            Role::Main | Role::Ephemeral => true,
        })
    }

    /// Whether the node has something to show but waiting.
    pub(super) fn has_begun(&self) -> bool {
        self.containers
            .iter()
            .any(|one| one.role != Role::Ephemeral && has_run(one))
    }

    /// When something happens by itself.
    pub(super) fn wakes(&self, timings: &Timings, now: Timestamp) -> Option<Timestamp> {
        if now < self.sandbox && self.deadline.is_none() {
            return Some(self.sandbox);
        }
        self.containers
            .iter()
            .filter_map(|one| one.wakes(timings, now))
            .min()
    }
}

/// Whether a process of the container was ever alive.
pub(super) fn has_run(container: &Container) -> bool {
    container.run.is_some() || container.exit.is_some() || container.last.is_some()
}

/// What a container has: what an earlier agent of the node reported, or what it requests.
fn given(spec: &ContainerSpec<'_>, status: &Value) -> Value {
    let items = status.get(list_of(spec.role)).and_then(Value::as_array);
    let mut items = items.into_iter().flatten();
    let found = items.find(|one| one.get("name") == Some(&spec.name.into()));
    found
        .and_then(|one| one.get("resources"))
        .unwrap_or(spec.resources)
        .clone()
}

/// Where the status reports such containers.
fn list_of(role: Role) -> &'static str {
    match role {
        Role::Main => "containerStatuses",
        Role::Init | Role::Sidecar => "initContainerStatuses",
        Role::Ephemeral => "ephemeralContainerStatuses",
    }
}

/// A container as an earlier agent of the node left it: what ran still runs, what was done is done.
fn restore(spec: &ContainerSpec<'_>, status: &Value) -> Option<Container> {
    let items = status.get(list_of(spec.role)).and_then(Value::as_array)?;
    let found = items
        .iter()
        .find(|one| one.get("name") == Some(&spec.name.into()))?;
    let image = found.get("image").and_then(Value::as_str)?;
    let restarts = found
        .get("restartCount")
        .and_then(Value::as_u64)
        .unwrap_or_default() as u32;
    let started = at(found, "/state/running/startedAt").and_then(Value::as_str);
    let exit = |terminated, run| exit(terminated, image, spec.version.plain_hash(spec), run);
    if let Some(since) = started.and_then(|text| text.parse().ok()) {
        let run = Run::of(spec, image, since);
        let mut container = Container::adopted(spec.name, spec.role, run, restarts);
        container.last = exit(at(found, "/lastState/terminated"), restarts.saturating_sub(1));
        return Some(container);
    }
    let last = exit(at(found, "/lastState/terminated"), restarts.saturating_sub(1));
    let (exit, last) = match exit(at(found, "/state/terminated"), restarts) {
        Some(exit) => (exit, last),
        // it waits to begin again
        None => (
            Exit {
                run: restarts,
                ..last?
            },
            None,
        ),
    };
    let mut container = Container::new(spec.name, spec.role);
    container.restarts = restarts;
    container.state = State::Exited;
    let begins_again = match spec.role {
        Role::Init => exit.code != 0,
        Role::Sidecar | Role::Main => true,
        Role::Ephemeral => false,
    };
    if begins_again {
        container.restart = Some((exit.finished, std::time::Duration::ZERO));
    }
    (container.exit, container.last) = (Some(exit), last);
    Some(container)
}

/// The end of a run, from a status.
fn exit(terminated: Option<&Value>, image: &str, plain_hash: u64, run: u32) -> Option<Exit> {
    let terminated = terminated?;
    let time = |name: &str| -> Option<Timestamp> { terminated.get(name)?.as_str()?.parse().ok() };
    let finished = time("finishedAt")?;
    let reason = terminated.get("reason").and_then(Value::as_str);
    Some(Exit {
        image: image.to_owned(),
        plain_hash,
        run,
        started: time("startedAt").unwrap_or(finished),
        finished,
        code: terminated
            .get("exitCode")
            .and_then(Value::as_i64)
            .unwrap_or_default(),
        reason: reason.unwrap_or_default().to_owned(),
    })
}
