//! The life of one container: wait, pull, start, run, stop, end, and again.
//!
//! A state machine over time. [`Container::advance`] does what is due and returns when to call it again; it
//! does not depend on other containers: the pod decides their order.

use std::time::Duration;

use jiff::Timestamp;

use super::Timings;
use super::images::{Fetch, Pulls};
use super::run::{Exit, Run};
use super::spec::{ContainerSpec, RestartPolicy, Role};
use crate::nodes::time::later;

/// The first pause of a container that keeps crashing; it doubles up to [`LONGEST_BACKOFF`].
const FIRST_BACKOFF: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);
/// How long a failed pull is shown as such, before it is one to be tried again.
const FRESH_FAILURE: Duration = Duration::from_secs(10);
/// A run of this length makes earlier crashes forgotten.
const FORGET_CRASHES: Duration = Duration::from_mins(10);

/// The exit code of a process that was killed.
const KILLED: i64 = 137;
/// The exit code of a process that was told to end and does not handle that.
const TERMINATED: i64 = 143;

/// What a node records of a container in events.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Note {
    Pulling,
    /// How long the pull took, and how long with the pulls before it; none if the image was there.
    Pulled(Option<[Duration; 2]>),
    /// Why not.
    NotPulled(String),
    PullBackOff,
    NotConfigured,
    Started,
    /// Stopped to begin anew, for its image or its resources.
    Restarts(&'static str),
    /// Stopped for good.
    Stops,
    BackOff,
}

/// What a container is doing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    Waiting,
    Pulling {
        until: Timestamp,
    },
    /// The image cannot be had.
    Unpulled {
        since: Timestamp,
    },
    /// Not created, for want of something that its environment is made of; and when it is tried again, once that is
    /// there.
    Unconfigured {
        since: Timestamp,
        retry: Option<Timestamp>,
    },
    Starting {
        until: Timestamp,
    },
    Running,
    /// Told to end; with which code it will.
    Stopping {
        until: Timestamp,
        code: i64,
    },
    Exited,
}

/// A container of a pod.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) state: State,
    pub(super) restarts: u32,
    pub(super) run: Option<Run>,
    /// How the latest run ended, unless another one began.
    pub(super) exit: Option<Exit>,
    /// How the run before the present one (or before the latest end) ended.
    pub(super) last: Option<Exit>,
    /// When an ended container begins again, and the pause if it crashed before.
    pub(super) restart: Option<(Timestamp, Duration)>,
    crashes: u32,
    /// The readiness probe fails.
    pub(super) unready: bool,
    pub(super) image: String,
    /// Why its image could not be pulled.
    failure: String,
    /// It is being stopped, but not by its node's agent, which takes that for a crash.
    is_signalled: bool,
    /// Is to begin again, though nothing else is to run, and why.
    again: Option<&'static str>,
    /// It is recorded that its image is not pulled again at once.
    waits_to_pull: bool,
    /// How long the pull of its image takes.
    pulls: Option<[Duration; 2]>,
    /// What happened to it, until the node records that.
    pub(super) notes: Vec<Note>,
}

impl Container {
    pub(super) fn new(name: &str, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            role,
            state: State::Waiting,
            restarts: 0,
            run: None,
            exit: None,
            last: None,
            restart: None,
            crashes: 0,
            unready: false,
            image: String::new(),
            failure: String::new(),
            is_signalled: false,
            again: None,
            waits_to_pull: false,
            pulls: None,
            notes: Vec::new(),
        }
    }

    /// A container that ran before this node's agent was started.
    pub(super) fn adopted(name: &str, role: Role, run: Run, restarts: u32) -> Self {
        Self {
            state: State::Running,
            restarts,
            image: run.image.clone(),
            run: Some(run),
            ..Self::new(name, role)
        }
    }

    /// Plays what is due.
    pub(super) fn advance(
        &mut self,
        spec: &ContainerSpec<'_>,
        policy: RestartPolicy,
        pulls: &mut Pulls<'_>,
        timings: &Timings,
        now: Timestamp,
    ) {
        loop {
            let before = self.state.clone();
            match before {
                State::Waiting => self.pull(spec, pulls, timings, now),
                _ if self.is_coming() && self.image != spec.image => self.pull(spec, pulls, timings, now),
                State::Unpulled { .. } if pulls.can_be_had(spec.image) => {
                    self.pull(spec, pulls, timings, now);
                }
                State::Pulling { until } if until <= now && spec.missing.is_some() => {
                    self.notes.extend([Note::Pulled(self.pulls), Note::NotConfigured]);
                    self.state = State::Unconfigured {
                        since: until,
                        retry: None,
                    };
                }
                State::Pulling { until } if until <= now => {
                    self.notes.push(Note::Pulled(self.pulls));
                    let until = later(until, timings.container_start);
                    self.state = State::Starting { until };
                }
                State::Unpulled { since } if !self.waits_to_pull && later(since, FRESH_FAILURE) <= now => {
                    self.waits_to_pull = true;
                    self.notes.push(Note::PullBackOff);
                }
                State::Unconfigured { since, retry } => self.configure(spec, timings, since, retry, now),
                State::Starting { until } if until <= now => self.start(spec, until),
                State::Running => self.running(spec, policy, timings, now),
                State::Stopping { until, code } if until <= now => {
                    let is_crash = self.is_signalled;
                    self.end(until, code, reason(code));
                    if is_crash {
                        self.schedule(policy, code);
                    } else {
                        self.restart = Some((until, Duration::ZERO));
                    }
                }
                State::Exited if self.restart.is_some_and(|(at, _)| at <= now) => {
                    self.pull(spec, pulls, timings, now);
                }
                _ => {}
            }
            if self.state == before {
                return;
            }
        }
    }

    fn pull(&mut self, spec: &ContainerSpec<'_>, pulls: &mut Pulls<'_>, timings: &Timings, now: Timestamp) {
        spec.image.clone_into(&mut self.image);
        self.restart = None;
        let Fetch { until, takes } = match pulls.fetch(spec.image, now, timings) {
            Ok(fetch) => fetch,
            Err(why) => {
                self.waits_to_pull = false;
                self.failure.clone_from(&why);
                self.notes.extend([Note::Pulling, Note::NotPulled(why)]);
                self.state = State::Unpulled { since: now };
                return;
            }
        };
        let all = until.duration_since(now).unsigned_abs();
        self.pulls = takes.map(|takes| [takes, all]);
        self.notes.extend(self.pulls.map(|_| Note::Pulling));
        self.state = State::Pulling { until };
    }

    /// Looks whether what was missing is there, every so often.
    fn configure(
        &mut self,
        spec: &ContainerSpec<'_>,
        timings: &Timings,
        since: Timestamp,
        retry: Option<Timestamp>,
        now: Timestamp,
    ) {
        let retry = match retry {
            _ if spec.missing.is_some() => None,
            Some(at) if at <= now => {
                let until = later(at, timings.container_start);
                self.state = State::Starting { until };
                return;
            }
            Some(at) => Some(at),
            None => Some(next_look(since, timings.config_retry, now)),
        };
        self.state = State::Unconfigured { since, retry };
    }

    /// On its way to the next run.
    pub(super) fn is_coming(&self) -> bool {
        matches!(
            self.state,
            State::Pulling { .. }
                | State::Unpulled { .. }
                | State::Unconfigured { .. }
                | State::Starting { .. }
        )
    }

    /// Why it does not come to its next run: reason and message.
    pub(super) fn held(&self, spec: &ContainerSpec<'_>, now: Timestamp) -> Option<(&'static str, String)> {
        match self.state {
            State::Unpulled { since } => {
                let failure = &self.failure;
                Some(if now < later(since, FRESH_FAILURE) {
                    ("ErrImagePull", failure.clone())
                } else {
                    let image = &self.image;
                    let message = format!("Back-off pulling image {image:?}: ErrImagePull: {failure}");
                    ("ImagePullBackOff", message)
                })
            }
            State::Unconfigured { .. } => {
                let missing = spec.missing.clone().unwrap_or_default();
                Some(("CreateContainerConfigError", missing))
            }
            _ => None,
        }
    }

    fn start(&mut self, spec: &ContainerSpec<'_>, since: Timestamp) {
        let mut run = Run::of(spec, &self.image, since);
        if let Some(exit) = self.exit.take() {
            self.last = Some(exit);
            self.restarts += 1;
            run.inherits = spec.inherits.map(|period| later(since, period));
        }
        self.run = Some(run);
        self.notes.push(Note::Started);
        self.state = State::Running;
    }

    fn running(
        &mut self,
        spec: &ContainerSpec<'_>,
        policy: RestartPolicy,
        timings: &Timings,
        now: Timestamp,
    ) {
        let end = self.run.as_ref().and_then(|run| run.end(timings));
        if let Some((at, code)) = end.filter(|(at, _)| *at <= now) {
            self.end(at, code, reason(code));
            self.schedule(policy, code);
            return;
        }
        if self.role == Role::Init {
            return;
        }
        let changed = (self.image != spec.image).then_some("definition changed, will be restarted");
        if let Some(why) = changed.or_else(|| self.again.take()) {
            self.notes.push(Note::Restarts(why));
            let until = later(now, timings.container_stop + spec.pre_stop);
            self.state = State::Stopping { until, code: 0 };
        }
    }

    /// Begins again, if it runs; else its next run is another one anyway. `why` follows the name in the event.
    pub(super) fn restart(&mut self, why: &'static str) {
        self.again = (self.state == State::Running).then_some(why);
    }

    /// The process ends by itself.
    pub(super) fn crash(&mut self, policy: RestartPolicy, code: i64, reason: &str, now: Timestamp) {
        if self.state == State::Running {
            self.end(now, code, reason);
            self.schedule(policy, code);
        }
    }

    fn end(&mut self, finished: Timestamp, code: i64, reason: &str) {
        let run = self.run.take();
        self.is_signalled = false;
        self.exit = Some(Exit {
            image: self.image.clone(),
            plain_hash: run.as_ref().map_or(0, |run| run.plain_hash),
            run: self.restarts,
            started: run.map_or(finished, |run| run.since),
            finished,
            code,
            reason: reason.to_owned(),
        });
        self.state = State::Exited;
    }

    /// Decides when an ended container begins again.
    fn schedule(&mut self, policy: RestartPolicy, code: i64) {
        let Some(exit) = &self.exit else { return };
        let again = match policy {
            _ if self.role == Role::Sidecar => true,
            _ if self.role == Role::Ephemeral => false,
            RestartPolicy::Always => self.role == Role::Main || code != 0,
            RestartPolicy::OnFailure => code != 0,
            RestartPolicy::Never => false,
        };
        let ran = exit.finished.duration_since(exit.started).unsigned_abs();
        self.crashes = if ran >= FORGET_CRASHES {
            1
        } else {
            self.crashes + 1
        };
        // the first one is free
        let pause = match self.crashes.saturating_sub(1) {
            0 => Duration::ZERO,
            doublings => FIRST_BACKOFF
                .saturating_mul(1 << (doublings - 1).min(10))
                .min(LONGEST_BACKOFF),
        };
        self.restart = again.then(|| (later(exit.finished, pause), pause));
        if again && !pause.is_zero() {
            self.notes.push(Note::BackOff);
        }
    }

    /// Stops the container for good, at the latest at `deadline`.
    pub(super) fn stop(&mut self, stop: Duration, deadline: Timestamp, now: Timestamp) {
        self.restart = None;
        match self.state {
            State::Running => {
                self.notes.push(Note::Stops);
                self.state = bounded(later(now, stop), 0, deadline);
            }
            _ if self.is_coming() => {
                self.state = if self.exit.is_some() {
                    State::Exited
                } else {
                    State::Waiting
                };
            }
            State::Stopping { until, code } => self.state = bounded(until, code, deadline),
            _ => {}
        }
        if let State::Stopping { until, code } = self.state
            && until <= now
        {
            self.end(until, code, reason(code));
        }
    }

    /// Tells its process to end, which is killed at the deadline. A process that would have come to an end by
    /// itself is cut short. Returns when it ends; `None` if there is none.
    pub(super) fn signal(
        &mut self,
        stop: Duration,
        deadline: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        match self.state {
            State::Running => {
                let is_finite = self.run.as_ref().is_some_and(|run| run.ends.is_some());
                let code = if is_finite { TERMINATED } else { 0 };
                self.is_signalled = true;
                self.state = bounded(later(now, stop), code, deadline);
            }
            State::Stopping { until, code } => self.state = bounded(until, code, deadline),
            _ => {}
        }
        match self.state {
            State::Stopping { until, .. } => Some(until),
            _ => None,
        }
    }

    /// Whether a process is alive.
    pub(super) fn is_alive(&self) -> bool {
        matches!(self.state, State::Running | State::Stopping { .. })
    }

    pub(super) fn is_started(&self, now: Timestamp) -> bool {
        let run = self.run.as_ref().filter(|_| self.is_alive());
        run.is_some_and(|run| run.started <= now || run.inherits(now))
    }

    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        match self.role {
            Role::Init => return self.has_succeeded(),
            Role::Ephemeral => return false,
            Role::Sidecar | Role::Main => {}
        }
        let run = self.run.as_ref().filter(|_| self.is_alive());
        !self.unready && run.is_some_and(|run| run.ready <= now || run.inherits(now))
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.state == State::Exited && self.exit.as_ref().is_some_and(|exit| exit.code == 0)
    }

    /// Ended, and does not begin again.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Exited && self.restart.is_none()
    }

    /// When something happens by itself.
    pub(super) fn wakes(&self, timings: &Timings, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            State::Waiting => None,
            State::Pulling { until } | State::Starting { until } | State::Stopping { until, .. } => {
                Some(until)
            }
            State::Unpulled { since } => Some(later(since, FRESH_FAILURE)).filter(|at| *at > now),
            State::Unconfigured { retry, .. } => retry,
            State::Exited => self.restart.map(|(at, _)| at),
            State::Running => {
                let run = self.run.as_ref()?;
                let ends = run.end(timings).map(|(at, _)| at);
                let times = [Some(run.started), Some(run.ready), run.inherits, ends];
                times.into_iter().flatten().filter(|at| *at > now).min()
            }
        }
    }
}

/// The next of the times that lie `every` so often after one.
fn next_look(since: Timestamp, every: Duration, now: Timestamp) -> Timestamp {
    let passed = now.duration_since(since).unsigned_abs().as_millis();
    let probes = passed / every.as_millis().max(1) + 1;
    later(
        since,
        every.saturating_mul(u32::try_from(probes).unwrap_or(u32::MAX)),
    )
}

/// At the deadline a process is killed.
fn bounded(until: Timestamp, code: i64, deadline: Timestamp) -> State {
    if until > deadline {
        return State::Stopping {
            until: deadline,
            code: KILLED,
        };
    }
    State::Stopping { until, code }
}

pub(super) fn reason(code: i64) -> &'static str {
    if code == 0 { "Completed" } else { "Error" }
}
