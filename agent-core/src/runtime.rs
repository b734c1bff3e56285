//! Whether there is a container runtime.

use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Call, backoff};
use crate::{Effect, Failure, Health};

/// Delays between detections that find none.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(30);

/// The container runtimes of the node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runtime {
    state: State,
    /// Names, in the order of preference.
    names: Box<[Box<str>]>,
    /// Detections that found none, and losses, since a call last succeeded.
    failures: u32,
    /// Detections and losses.
    changes: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum State {
    /// The first detection has not ended.
    #[default]
    Starting,
    Available,
    Lost {
        problem: Box<str>,
        /// When the next detection begins; `None` while one runs.
        retry: Option<Timestamp>,
        is_reported: bool,
    },
}

impl Runtime {
    pub(crate) fn is_available(&self) -> bool {
        self.state == State::Available
    }

    /// Moves whenever the runtime may have come or gone, or others may be there.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Does it have a runtime of this name?
    pub(crate) fn has(&self, name: &str) -> bool {
        self.is_available() && self.names.iter().any(|one| &**one == name)
    }

    /// The runtime that comes first.
    pub(crate) fn first(&self) -> Option<Box<str>> {
        self.names.first().filter(|_| self.is_available()).cloned()
    }

    /// Why nothing can be done, once that is known.
    pub(crate) fn problem(&self) -> Option<String> {
        match &self.state {
            State::Lost { problem, .. } => Some(format!("the container runtime is not available: {problem}")),
            State::Starting | State::Available => None,
        }
    }

    pub(crate) fn health(&self) -> Health {
        match &self.state {
            State::Starting => Health::Starting,
            State::Available => Health::Ready,
            State::Lost { problem, .. } => Health::Degraded(problem.clone()),
        }
    }

    pub(crate) fn detected(&mut self, result: Result<Box<[Box<str>]>, Box<str>>, call: &mut Call<'_>) {
        self.changes = self.changes.wrapping_add(1);
        match result {
            Ok(names) if !names.is_empty() => {
                if !self.is_available() {
                    call.info(format!("container runtimes: {}", names.join(", ")));
                    call.emit(Effect::Health(Health::Ready));
                }
                self.names = names;
                self.state = State::Available;
            }
            Ok(_) => self.fail("none was found".into(), call),
            Err(problem) => self.fail(problem, call),
        }
    }

    /// It cannot be reached any more.
    pub(crate) fn lost(&mut self, problem: Box<str>, call: &mut Call<'_>) {
        if self.is_available() {
            self.fail(problem, call);
        }
    }

    /// Takes note of the result of a call; returns in plain words what went wrong, if something did.
    pub(crate) fn answered<T>(
        &mut self,
        result: &Result<T, Failure>,
        call: &mut Call<'_>,
    ) -> Option<Box<str>> {
        match result {
            Ok(_) => {
                self.failures = 0;
                None
            }
            Err(Failure::Failed(problem)) => Some(problem.clone()),
            Err(Failure::Unavailable(problem)) => {
                self.lost(problem.clone(), call);
                Some(problem.clone())
            }
        }
    }

    fn fail(&mut self, problem: Box<str>, call: &mut Call<'_>) {
        self.changes = self.changes.wrapping_add(1);
        self.failures = self.failures.saturating_add(1);
        let is_reported = match &self.state {
            State::Lost {
                is_reported,
                problem: before,
                ..
            } if *before == problem => *is_reported,
            State::Lost { is_reported, .. } => {
                call.emit(Effect::Health(Health::Degraded(problem.clone())));
                *is_reported
            }
            State::Starting | State::Available => {
                call.warn(format!("the container runtime is not available: {problem}"));
                call.emit(Effect::Health(Health::Degraded(problem.clone())));
                false
            }
        };
        self.state = State::Lost {
            problem,
            retry: Some(call.after(backoff(FIRST, LAST, self.failures))),
            is_reported,
        };
    }

    /// The problem, the first time that it is asked for in an outage.
    pub(crate) fn unreported_problem(&mut self) -> Option<String> {
        let State::Lost { is_reported, .. } = &mut self.state else {
            return None;
        };
        let is_first = !std::mem::replace(is_reported, true);
        self.problem().filter(|_| is_first)
    }

    pub(crate) fn advance(&mut self, call: &mut Call<'_>) {
        if let State::Lost { retry, .. } = &mut self.state
            && retry.is_some_and(|retry| retry <= call.now)
        {
            *retry = None;
            call.emit(Effect::DetectRuntimes);
        }
    }

    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        match &self.state {
            State::Lost { retry, .. } => *retry,
            State::Starting | State::Available => None,
        }
    }
}
