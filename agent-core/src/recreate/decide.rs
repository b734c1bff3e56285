//! What is reported of the containers of a request, and which of them are stopped now.
//!
//! Containers are stopped one after the other, in the order of the request: each once the one before it has been
//! stopped, and with `orderedRecreate` once that is ready again. A container is stopped at most once for a request.
//! Before it is stopped, its id is stored in the message of its state; afterwards `isKilled` is. So an agent that
//! starts in between sees whether the container is gone.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::injected::is_injected;

use crate::request::{ContainerPhase, ContainerState, PodHooks, RequestView, RequestedContainer};
use crate::{ContainerId, RuntimeContainer, annotations};

/// Message of a container that the runtime does not know. Tools match on it.
const NOT_FOUND: &str = "not found container on Node";
/// The beginning of the message of a container that could not be stopped. Tools match on it.
const KILL_ERROR: &str = "kill container error";
/// Message of a container that has ended and that the kubelet does not start again.
const ENDED: &str = "The container has ended and is not started again";
/// The beginning of the message of a container that is being stopped; its id follows.
const STOPPING: &str = "Stopping container ";

/// The stop of a container for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kill {
    UnderWay(ContainerId),
    /// The runtime has answered: with this problem, if there was one.
    Ended(ContainerId, Option<Box<str>>),
}

/// What is known of a request when it is decided about.
pub(super) struct Known<'a> {
    pub(super) view: &'a RequestView,
    /// Its pod, if it could be read.
    pub(super) pod: Option<&'a PodHooks>,
    /// Name of the runtime of its containers.
    pub(super) runtime: &'a str,
    /// The newest container of each name.
    pub(super) newest: BTreeMap<&'a str, &'a RuntimeContainer>,
    /// By names of containers.
    pub(super) kills: &'a BTreeMap<Box<str>, Kill>,
    /// May this container be stopped now?
    pub(super) may_stop: &'a dyn Fn(&ContainerId) -> bool,
    pub(super) now: Timestamp,
}

/// What is to be done for a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) states: Vec<ContainerState>,
    /// The containers to stop once this is stored, with their names.
    pub(super) kills: Vec<(Box<str>, ContainerId)>,
    pub(super) is_over: bool,
    /// When something changes by time alone.
    pub(super) due: Option<Timestamp>,
}

/// What is right for one container.
enum Verdict {
    /// Nothing but to report this.
    Report(ContainerState),
    /// This, and to look again at that time.
    Until(ContainerState, Timestamp),
    Stop(ContainerId),
}

impl<'a> Known<'a> {
    /// The newest container of each name.
    pub(super) fn newest(all: &'a [RuntimeContainer]) -> BTreeMap<&'a str, &'a RuntimeContainer> {
        let mut newest: BTreeMap<&str, &RuntimeContainer> = BTreeMap::new();
        for container in all {
            let known = newest.entry(&container.name).or_insert(container);
            if (known.created, &known.id) < (container.created, &container.id) {
                *known = container;
            }
        }
        newest
    }

    pub(super) fn decide(&self) -> Decision {
        let containers = &self.view.containers;
        let verdicts: Vec<Verdict> = containers.iter().map(|one| self.judge(one)).collect();
        let is_failure = |verdict: &Verdict| matches!(verdict, Verdict::Report(state) if state.phase == ContainerPhase::Failed);
        let ignores = &*self.view.strategy.failure_policy == "Ignore";
        let has_failed = !ignores && verdicts.iter().any(is_failure);
        let mut decision = Decision::default();
        let together = is_injected("StopsTogether");
        let is_stopping = |kill: &Kill| matches!(kill, Kill::UnderWay(_));
        let stops = self.kills.values().any(is_stopping);
        let mut is_ones_turn = !has_failed && (!stops || together);
        let mut are_all_final = true;
        for (container, verdict) in containers.iter().zip(verdicts) {
            let is_to_stop = matches!(verdict, Verdict::Stop(_));
            let state = match verdict {
                Verdict::Report(state) => state,
                Verdict::Until(state, time) => {
                    decision.due = decision.due.into_iter().chain([time]).min();
                    state
                }
                Verdict::Stop(id) if is_ones_turn && (self.may_stop)(&id) => {
                    let state = stopping(&container.name, &id);
                    decision.kills.push((container.name.clone(), id));
                    state
                }
                Verdict::Stop(_) => self.untouched(container),
            };
            are_all_final &= state.phase.is_final();
            let waits = is_to_stop || (self.view.strategy.ordered_recreate && !state.phase.is_final());
            is_ones_turn &= !waits || together;
            decision.states.push(state);
        }
        decision.is_over = are_all_final || (has_failed && !stops);
        decision
    }

    fn judge(&self, container: &RequestedContainer) -> Verdict {
        let name = &container.name;
        let forgets = is_injected("StopForgotten") && !self.kills.contains_key(name);
        let stored = self.view.state(name).filter(|_| !forgets);
        if let Some(stored) = stored.filter(|stored| stored.phase.is_final()) {
            return Verdict::Report(stored.clone());
        }
        let newest = self.newest.get(&**name).copied();
        let id_of = |container: &RuntimeContainer| ContainerId {
            runtime: self.runtime.into(),
            id: container.id.clone(),
        };
        let still_runs = |id: &ContainerId| newest.is_some_and(|one| one.is_running && id_of(one) == *id);
        let mut is_killed = stored.is_some_and(|stored| stored.is_killed);
        match self.kills.get(name) {
            Some(Kill::UnderWay(id)) => return Verdict::Report(stopping(name, id)),
            Some(Kill::Ended(id, problem)) if still_runs(id) => {
                let problem = problem.as_deref().unwrap_or("it still runs");
                return Verdict::Report(ContainerState {
                    phase: ContainerPhase::Failed,
                    message: format!("{KILL_ERROR}: {problem}").into(),
                    ..state(name, is_killed)
                });
            }
            Some(Kill::Ended(..)) => is_killed = true,
            None => match stored.and_then(target) {
                // An agent before this one has begun.
                Some(id) if still_runs(&id) => return Verdict::Stop(id),
                Some(_) => is_killed = true,
                None => {}
            },
        }
        let waiting = ContainerState {
            message: self.awaited().into(),
            ..state(name, is_killed)
        };
        let is_last = |code| self.pod.is_some_and(|pod| pod.is_last(name, code));
        let ended = ContainerState {
            phase: ContainerPhase::Succeeded,
            message: ENDED.into(),
            ..state(name, is_killed)
        };
        let Some(newest) = newest else {
            // Whatever it ended with.
            if is_last(1) {
                return Verdict::Report(ended);
            }
            return Verdict::Report(if is_killed {
                waiting
            } else {
                ContainerState {
                    phase: ContainerPhase::Pending,
                    message: NOT_FOUND.into(),
                    ..waiting
                }
            });
        };
        if !newest.is_running {
            let is_over = newest.exit_code.is_some_and(is_last);
            return Verdict::Report(if is_over { ended } else { waiting });
        }
        let id = id_of(newest);
        let is_replaced = container.status_context.as_ref().map(|before| {
            *before.container_id != *id.to_string()
                || annotations::restart_count(newest) > before.restart_count
        });
        let is_to_stop = match is_replaced {
            // The container of the request still runs, whatever the status says of a stop.
            Some(false) => true,
            Some(true) => self.view.strategy.force_recreate && !is_killed,
            None => !is_killed,
        };
        if is_to_stop {
            return Verdict::Stop(id);
        }
        if !self.view.is_ready(name, &id) {
            return Verdict::Report(waiting);
        }
        let counts = self.counts_from(newest);
        if counts > self.now {
            return Verdict::Until(waiting, counts);
        }
        Verdict::Report(ContainerState {
            phase: ContainerPhase::Succeeded,
            ..state(name, is_killed)
        })
    }

    /// When a container has run for long enough.
    fn counts_from(&self, container: &RuntimeContainer) -> Timestamp {
        let started = container.started.unwrap_or(container.created);
        let started = Timestamp::from_nanosecond(started.into()).unwrap_or(Timestamp::MIN);
        let least = SignedDuration::from_secs(self.view.strategy.min_started_seconds.into());
        started.checked_add(least).unwrap_or(Timestamp::MAX)
    }

    /// What a container waits for that was stopped. It is the same for all of that time: each other message is a write.
    fn awaited(&self) -> String {
        match self.view.strategy.min_started_seconds {
            seconds if seconds > 0 => {
                format!("Waiting for the new container to be ready and to have run for {seconds} s")
            }
            _ => "Waiting for the new container to be ready".to_owned(),
        }
    }

    /// The state of a container that is not stopped yet.
    fn untouched(&self, container: &RequestedContainer) -> ContainerState {
        let stored = self.view.state(&container.name).cloned();
        stored.unwrap_or_else(|| ContainerState {
            name: container.name.clone(),
            ..ContainerState::default()
        })
    }
}

fn state(name: &str, is_killed: bool) -> ContainerState {
    ContainerState {
        name: name.into(),
        phase: ContainerPhase::Recreating,
        message: Box::default(),
        is_killed,
    }
}

/// The state of a container that is being stopped.
fn stopping(name: &str, id: &ContainerId) -> ContainerState {
    ContainerState {
        message: format!("{STOPPING}{id}").into(),
        ..state(name, false)
    }
}

/// The container that an agent has begun to stop, if it was not known to have stopped.
fn target(state: &ContainerState) -> Option<ContainerId> {
    let id = state
        .message
        .strip_prefix(STOPPING)
        .filter(|_| !state.is_killed)?;
    let (runtime, id) = id.split_once("://")?;
    Some(ContainerId {
        runtime: runtime.into(),
        id: id.into(),
    })
}
