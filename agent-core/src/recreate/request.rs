//! One request: what is known of it, and what is being done for it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::names::agent::CONTAINER_RECREATE;
use kruise_plan_kit::injected::is_injected;
use kube_cache::Version;
use serde_json::Value;

use crate::call::{Call, earlier, whole_seconds};
use crate::hook::{self, Hook};
use crate::request::{COMPLETED, PENDING, PodHooks, RECREATING, RequestStatus, RequestView};
use crate::runtime::Runtime;
use crate::stop::{Order, Stops};
use crate::{About, ContainerId, Effect, Failure, RuntimeContainer, WriteError};

use super::decide::{Kill, Known};
use super::turn::{Candidate, Turn};
use super::{LOOK, status};

/// Seconds for hook and end of a container, if neither pod nor user has said.
const DEFAULT_GRACE: u64 = 30;
/// The pod is read so often before its containers are stopped with what the request says of their hooks.
const READS: u32 = 3;
/// From a look at which a container could not be stopped yet to the next.
const HELD: Duration = Duration::from_secs(1);
/// The beginning of the message of a request whose runtime the node does not have. Tools match on it.
const NO_RUNTIME: &str = "failed to find runtime service";

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// As it is stored, with the last write.
    view: RequestView,
    pod: Pod,
    step: Step,
    /// Have its containers been looked at?
    has_begun: bool,
    /// Stops of this process, by names of containers.
    kills: BTreeMap<Box<str>, Kill>,
    /// When the containers are looked at next.
    look: Timestamp,
    /// After a failure nothing is tried again before.
    retry: Option<Timestamp>,
    failures: u32,
    /// When something is due, as far as the last call could say.
    timer: Option<Timestamp>,
}

/// What is known of the pod.
#[derive(Clone, Debug)]
enum Pod {
    /// It was not read, or could not be so often.
    Unread(u32),
    Read(PodHooks),
    /// It could not be read. Its containers are stopped with the hooks that the request names.
    Unreadable,
    /// There is nothing to stop. The manager will end the request.
    Gone,
}

#[derive(Clone, Debug)]
enum Step {
    Idle,
    ReadingPod,
    Inspecting,
    Writing {
        status: RequestStatus,
        /// What is stopped once it is stored.
        kills: Vec<(Box<str>, ContainerId)>,
    },
}

/// What holds a request back, if something does.
enum Hold {
    /// Nothing.
    Free,
    /// Something that is not reported.
    Silent,
    /// Something that is reported, in this phase. It ends by itself at a time, if there is one.
    Reported(&'static str, String, Option<Timestamp>),
    /// The request cannot be carried out.
    Hopeless(String),
}

impl Request {
    pub(super) fn new(view: &Arc<RequestView>, now: Timestamp) -> Self {
        Self {
            view: RequestView::clone(view),
            pod: Pod::Unread(0),
            step: Step::Idle,
            has_begun: false,
            kills: BTreeMap::new(),
            look: now,
            retry: None,
            failures: 0,
            timer: None,
        }
    }

    pub(super) fn candidate(&self) -> Candidate<'_> {
        (&self.view, self.has_begun)
    }

    /// Nothing is due, as long as it is not its turn.
    pub(super) fn rest(&mut self) {
        self.timer = None;
    }

    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        self.timer
    }

    /// Is a container being stopped for it?
    pub(super) fn is_stopping(&self) -> bool {
        self.kills.values().any(|kill| matches!(kill, Kill::UnderWay(_)))
    }

    /// It has changed. What is from before the last write says nothing new.
    pub(super) fn observe(&mut self, view: &Arc<RequestView>, now: Timestamp) {
        if Version::of(&**view) < Version::of(&self.view) {
            return;
        }
        let before = std::mem::replace(&mut self.view, RequestView::clone(view));
        let with_its_version = RequestView {
            resource_version: self.view.resource_version.clone(),
            ..before
        };
        if with_its_version != self.view {
            self.look = now;
        }
        self.retry = None;
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, turn: Turn, runtime: &Runtime, call: &mut Call<'_>) {
        if !matches!(self.step, Step::Idle) {
            return;
        }
        if self.retry.is_some_and(|retry| retry > call.now) {
            self.timer = self.retry;
            return;
        }
        match self.hold(turn, runtime, call.now) {
            Hold::Free => self.run(runtime, call),
            Hold::Silent => {}
            Hold::Reported(phase, message, until) => {
                self.timer = until;
                let status = RequestStatus {
                    phase: phase.into(),
                    message: message.into(),
                    ..self.view.status.clone()
                };
                self.write(status, Vec::new(), true, call);
            }
            Hold::Hopeless(message) => {
                let status = RequestStatus {
                    message: message.into(),
                    ..self.view.status.clone()
                };
                self.complete(status, call);
            }
        }
    }

    fn hold(&self, turn: Turn, runtime: &Runtime, now: Timestamp) -> Hold {
        let phase = &*self.view.status.phase;
        if let Turn::Waits(name) = turn {
            if !phase.is_empty() {
                return Hold::Silent;
            }
            let message = format!("Waiting for ContainerRecreateRequest {name} of the same pod");
            return Hold::Reported(PENDING, message, None);
        }
        if let Some(problem) = runtime.problem() {
            let phase = if phase == RECREATING { RECREATING } else { PENDING };
            return Hold::Reported(phase, problem, None);
        }
        if !runtime.is_available() {
            return Hold::Silent;
        }
        if let Err(problem) = self.runtime(runtime) {
            return Hold::Hopeless(format!("{NO_RUNTIME}: {problem}"));
        }
        let Some(grace) = self.view.strategy.unready_grace_period_seconds else {
            return Hold::Free;
        };
        let Some(since) = self.view.unready_since else {
            let message = "Waiting for the manager to take the pod out of service";
            return Hold::Reported(RECREATING, message.to_owned(), None);
        };
        let grace = SignedDuration::from_secs(grace * i64::from(!is_injected("StopInService")));
        let until = since.checked_add(grace).unwrap_or(Timestamp::MAX);
        if until > now {
            let message = format!(
                "The pod is out of service since {since}; its containers are stopped after {grace:#}"
            );
            return Hold::Reported(RECREATING, message, Some(until));
        }
        Hold::Free
    }

    /// Name of the runtime of its containers.
    fn runtime(&self, runtime: &Runtime) -> Result<Box<str>, String> {
        let contexts = self
            .view
            .containers
            .iter()
            .filter_map(|one| one.status_context.as_ref());
        let names = contexts.map(|context| match context.container_id.split_once("://") {
            Some((name, _)) => name,
            None => "",
        });
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        match names[..] {
            [] => runtime.first().ok_or_else(|| "the node has none".to_owned()),
            [name] if runtime.has(name) => Ok(name.into()),
            [name] => Err(format!("the node has no container runtime {name:?}")),
            _ => Err(format!("the containers have several: {}", names.join(", "))),
        }
    }

    /// UID of its pod, once it is known.
    fn pod_uid(&self) -> Option<&str> {
        match &self.pod {
            _ if !self.view.pod_uid.is_empty() => Some(&self.view.pod_uid),
            Pod::Read(pod) => Some(&pod.uid),
            Pod::Unread(_) | Pod::Unreadable | Pod::Gone => None,
        }
    }

    /// Nothing holds it back.
    fn run(&mut self, runtime: &Runtime, call: &mut Call<'_>) {
        match &self.pod {
            Pod::Gone => return,
            Pod::Unread(_) => {
                self.step = Step::ReadingPod;
                return call.emit(Effect::ReadPod {
                    request: self.view.uid.clone(),
                    namespace: self.view.namespace.clone(),
                    name: self.view.pod.clone(),
                });
            }
            Pod::Read(_) | Pod::Unreadable => {}
        }
        if self.look > call.now {
            self.timer = Some(self.look);
            return;
        }
        let (Some(pod), Ok(runtime)) = (self.pod_uid().map(Into::into), self.runtime(runtime)) else {
            return;
        };
        self.step = Step::Inspecting;
        self.has_begun = true;
        let containers = self.view.containers.iter();
        call.emit(Effect::InspectContainers {
            request: self.view.uid.clone(),
            pod,
            runtime,
            containers: containers.map(|one| one.name.clone()).collect(),
        });
    }

    pub(super) fn pod_read(&mut self, result: Result<Option<PodHooks>, Box<str>>, call: &mut Call<'_>) {
        if !matches!(self.step, Step::ReadingPod) {
            return;
        }
        self.step = Step::Idle;
        let uid = &self.view.pod_uid;
        self.pod = match (result, &self.pod) {
            (Ok(Some(pod)), _) if !pod.deleting && (uid.is_empty() || pod.uid == *uid) => Pod::Read(pod),
            (Ok(_), _) => Pod::Gone,
            (Err(problem), Pod::Unread(failures)) => {
                let failures = failures.saturating_add(1);
                self.retry = Some(call.retry_of_write(failures));
                let view = &self.view;
                call.warn(format!(
                    "pod {}/{} cannot be read: {problem}",
                    view.namespace, view.pod
                ));
                if failures >= READS && !uid.is_empty() {
                    Pod::Unreadable
                } else {
                    Pod::Unread(failures)
                }
            }
            (Err(_), _) => return,
        };
    }

    pub(super) fn not_inspected(&mut self, problem: &str, call: &mut Call<'_>) {
        if !matches!(self.step, Step::Inspecting) {
            return;
        }
        self.step = Step::Idle;
        self.failures = self.failures.saturating_add(1);
        self.retry = Some(call.retry_of_write(self.failures));
        let view = &self.view;
        call.info(format!(
            "containers of pod {}/{} cannot be read: {problem}",
            view.namespace, view.pod
        ));
    }

    /// Its containers are known.
    pub(super) fn decide(
        &mut self,
        containers: &[RuntimeContainer],
        has_room: bool,
        runtime: &Runtime,
        stops: &mut Stops,
        call: &mut Call<'_>,
    ) {
        if !matches!(self.step, Step::Inspecting) {
            return;
        }
        self.step = Step::Idle;
        self.failures = 0;
        let Ok(runtime) = self.runtime(runtime) else {
            return;
        };
        // What became of it since is for the manager to say.
        if self.view.is_over() {
            return;
        }
        let is_held = Cell::new(false);
        let decision = Known {
            view: &self.view,
            pod: self.known_pod(),
            runtime: &runtime,
            newest: Known::newest(containers),
            kills: &self.kills,
            may_stop: &|id| {
                let may_stop = has_room && !stops.is_stopping(id);
                is_held.set(is_held.get() || !may_stop);
                may_stop
            },
            now: call.now,
        }
        .decide();
        let later = call.after(if is_held.get() { HELD } else { LOOK });
        self.look = earlier(decision.due, Some(later)).unwrap_or(later);
        let status = RequestStatus {
            phase: RECREATING.into(),
            message: Box::default(),
            container_recreate_states: decision.states,
            ..self.view.status.clone()
        };
        if is_injected("StopUnstored") && !decision.kills.is_empty() {
            self.kill(decision.kills, stops, call);
            self.write(status, Vec::new(), false, call);
        } else if decision.is_over {
            self.complete(status, call);
        } else if status == self.view.status {
            self.kill(decision.kills, stops, call);
        } else {
            let is_guarded = !decision.kills.is_empty() || status.phase != self.view.status.phase;
            self.write(status, decision.kills, is_guarded, call);
        }
    }

    fn complete(&mut self, status: RequestStatus, call: &mut Call<'_>) {
        let status = RequestStatus {
            phase: COMPLETED.into(),
            completion_time: Some(whole_seconds(call.now)),
            ..status
        };
        self.write(status, Vec::new(), true, call);
    }

    /// Stores what differs, if anything does.
    fn write(
        &mut self,
        status: RequestStatus,
        kills: Vec<(Box<str>, ContainerId)>,
        is_guarded: bool,
        call: &mut Call<'_>,
    ) {
        let Some(patch) = status::patch(&self.view, &status, is_guarded) else {
            return;
        };
        self.step = Step::Writing { status, kills };
        self.timer = None;
        call.emit(Effect::PatchRequestStatus {
            namespace: self.view.namespace.clone(),
            name: self.view.name.clone(),
            uid: self.view.uid.clone(),
            patch,
        });
    }

    pub(super) fn written(
        &mut self,
        result: Result<Box<str>, WriteError>,
        stops: &mut Stops,
        call: &mut Call<'_>,
    ) {
        let Step::Writing { status, kills } = std::mem::replace(&mut self.step, Step::Idle) else {
            return;
        };
        match result {
            Ok(version) => {
                self.failures = 0;
                let written: Option<Version> = version.parse().ok();
                if written.is_none() || Version::of(&self.view) < written {
                    self.view.status = status;
                    self.view.resource_version = version;
                }
                self.kill(kills, stops, call);
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                self.retry = Some(call.retry_of_write(self.failures));
                self.look = call.now;
                if let WriteError::Failed(problem) = error {
                    let view = &self.view;
                    call.warn(format!(
                        "the status of ContainerRecreateRequest {}/{} could not be written: {problem}",
                        view.namespace, view.name
                    ));
                }
            }
        }
    }

    fn known_pod(&self) -> Option<&PodHooks> {
        match &self.pod {
            Pod::Read(pod) => Some(pod),
            Pod::Unread(_) | Pod::Unreadable | Pod::Gone => None,
        }
    }

    /// Stops containers. That they are is stored.
    fn kill(&mut self, kills: Vec<(Box<str>, ContainerId)>, stops: &mut Stops, call: &mut Call<'_>) {
        for (name, container) in kills {
            let order = self.order(&name, container.clone());
            self.kills.insert(name, Kill::UnderWay(container));
            stops.begin(order, call);
        }
    }

    fn order(&self, name: &str, container: ContainerId) -> Order {
        let view = &self.view;
        let grace = view.strategy.termination_grace_period_seconds;
        let grace = grace.map_or(DEFAULT_GRACE, |seconds| {
            u64::try_from(seconds).unwrap_or_default()
        });
        Order {
            container,
            about: About::Container {
                namespace: view.namespace.clone(),
                pod: view.pod.clone(),
                uid: self.pod_uid().unwrap_or_default().into(),
                container: name.into(),
            },
            component: CONTAINER_RECREATE,
            message: format!(
                "Stopping container {name} by ContainerRecreateRequest {}",
                view.name
            ),
            grace: Duration::from_secs(grace),
            hook: self.hook(name),
        }
    }

    /// The hook of a container, from its pod, where it is complete; else from the request.
    fn hook(&self, name: &str) -> Result<Option<Hook>, String> {
        let pod = self.known_pod();
        let ip = pod.and_then(|pod| pod.ip.as_deref());
        let of_pod = pod.and_then(|pod| pod.containers.iter().find(|one| &*one.name == name));
        let requested = || self.view.containers.iter().find(|one| &*one.name == name);
        let of_pod = of_pod.map(|one| (one.pre_stop.as_ref(), &one.ports));
        let known = of_pod.or_else(|| requested().map(|one| (one.pre_stop.as_ref(), &one.ports)));
        let (handler, ports) = known.unwrap_or((None, &Value::Null));
        handler.map_or(Ok(None), |handler| hook::hook(handler, ports, ip))
    }

    /// A container was stopped, or could not be. The next look says whether it has ended.
    pub(super) fn container_stopped(
        &mut self,
        container: &ContainerId,
        result: &Result<(), Failure>,
        now: Timestamp,
    ) {
        let is_it = |kill: &Kill| matches!(kill, Kill::UnderWay(id) if id == container);
        let Some((name, _)) = self.kills.iter().find(|(_, kill)| is_it(kill)) else {
            return;
        };
        let name = name.clone();
        let problem = match result {
            Ok(()) => None,
            Err(Failure::Failed(problem)) => Some(problem.clone()),
            Err(Failure::Unavailable(_)) => {
                // The runtime may not have received it. As for an agent that starts anew, what is stored says what
                // to do.
                self.kills.remove(&name);
                self.look = now;
                return;
            }
        };
        self.kills.insert(name, Kill::Ended(container.clone(), problem));
        self.look = now;
    }
}
