//! One probe of one container: when it runs, and what its result is.

use jiff::{SignedDuration, Timestamp};
use kruise_api::names::agent::{POD_PROBE, PROBE_FAILED, PROBE_SUCCEEDED};
use kruise_api::podprobemarker::State;

use crate::call::{Call, after, whole_seconds};
use crate::node_pod_probe::{ContainerProbe, Probe, ProbeState, ProbedPod};
use crate::{
    About, ContainerId, Effect, EventNote, Failure, Handler, Life, ProbeResult, ProbeRun, ProbedContainer,
    RunId,
};

/// Bytes of a message that are reported.
const MESSAGE: usize = 1024;
/// Before the reason why a probe cannot be run.
const NOT_RUN: &str = "the probe cannot be run: ";
/// Runs one after the other that could not be made, before the result is unknown for that: a runtime may restart.
const MOST_ERRORS: u32 = 3;

/// Shortest time between two results that differ in nothing but what the probe printed. A probe that prints the
/// time would otherwise be a write in each of its periods.
const MESSAGE_KEPT: SignedDuration = SignedDuration::from_mins(1);

/// A probe of a container.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    /// The pod, for events.
    about: About,
    name: Box<str>,
    container: Box<str>,
    probe: Result<Probe, Box<str>>,
    /// When it runs next.
    due: Timestamp,
    /// The newest container that was seen.
    seen: Option<Seen>,
    running: Option<(RunId, Kind)>,
    /// Runs in a row that ended alike.
    streak: Option<(State, u32)>,
    /// Runs in a row that could not be made.
    errors: u32,
    result: Option<ProbeState>,
}

/// A container.
#[derive(Clone, Debug)]
struct Seen {
    container: ContainerId,
    created: Timestamp,
    /// When it started, if it runs.
    since: Option<Timestamp>,
}

/// What a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A process in the container.
    Command,
    /// A connection to the pod.
    Request,
}

/// What a worker does that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Run(Kind),
    /// There is nothing to probe. It is due later.
    Waits,
}

impl Worker {
    /// `stored` is the result that was reported before the agent started.
    pub(super) fn new(
        pod: &ProbedPod,
        probe: &ContainerProbe,
        stored: Option<&ProbeState>,
        due: Timestamp,
        call: &mut Call<'_>,
    ) -> Self {
        let mut worker = Self {
            about: About::Pod {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                uid: pod.uid.clone(),
            },
            name: probe.name.clone(),
            container: probe.container.clone(),
            probe: probe.probe.clone(),
            due,
            seen: None,
            running: None,
            streak: None,
            errors: 0,
            result: stored.cloned(),
        };
        worker.report_broken(call);
        worker
    }

    /// The probe is another one now, or may be. The result of what it did before is not one of what it does now.
    pub(super) fn update(&mut self, probe: &ContainerProbe, call: &mut Call<'_>) {
        let is_same = self.container == probe.container && self.probe == probe.probe;
        if is_same {
            return;
        }
        let handler =
            |probe: &Result<Probe, Box<str>>| probe.as_ref().ok().map(|probe| probe.handler.clone());
        let does_the_same =
            self.container == probe.container && handler(&self.probe) == handler(&probe.probe);
        if self.container != probe.container {
            self.seen = None;
        }
        self.container.clone_from(&probe.container);
        self.probe.clone_from(&probe.probe);
        if !does_the_same {
            self.cancel(call);
            self.begin_anew(call);
            self.due = call.now;
        } else if let Ok(probe) = &self.probe {
            self.due = self.due.min(call.after(probe.period));
        }
        self.report_broken(call);
    }

    /// What was found out before counts for nothing any more.
    fn begin_anew(&mut self, call: &mut Call<'_>) -> bool {
        self.streak = None;
        self.errors = 0;
        self.result.is_some() && self.publish(State::Unknown, "", call)
    }

    fn report_broken(&mut self, call: &mut Call<'_>) {
        if let Err(problem) = &self.probe {
            let message = format!("{NOT_RUN}{problem}");
            self.publish(State::Unknown, &message, call);
        }
    }

    pub(super) fn container(&self) -> &str {
        &self.container
    }

    pub(super) fn result(&self) -> Option<&ProbeState> {
        self.result.as_ref()
    }

    pub(super) fn due(&self) -> Timestamp {
        self.due
    }

    pub(super) fn run(&self) -> Option<RunId> {
        self.running.map(|(run, _)| run)
    }

    pub(super) fn running(&self) -> Option<Kind> {
        self.running.map(|(_, kind)| kind)
    }

    /// Does it wait for a time? Requests and connections wait for the address of the pod.
    pub(super) fn waits(&self) -> bool {
        let Ok(probe) = &self.probe else {
            return false;
        };
        let has_target = match &probe.handler {
            Handler::Exec(_) => true,
            Handler::Http { host, .. } | Handler::Tcp { host, .. } => !host.is_empty(),
        };
        has_target && self.running.is_none()
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.waits() && self.due <= now
    }

    /// The newest container of its name, as it is now. Returns whether the result changes.
    pub(super) fn observe(&mut self, found: Option<&ProbedContainer>, call: &mut Call<'_>) -> bool {
        let Ok(delay) = self.probe.as_ref().map(|probe| probe.initial_delay) else {
            return false;
        };
        let Some(found) = found else {
            // There was one, and the kubelet has removed it: one that was seen, or that the stored result is about.
            if self.seen.is_none() && self.result.is_none() {
                return false;
            }
            if let Some(seen) = &mut self.seen {
                seen.since = None;
            }
            return self.report_stopped(call);
        };
        let before = self.seen.as_ref();
        let is_new = before.is_none_or(|seen| seen.container != found.container);
        let has_started =
            found.life == Life::Running && (is_new || before.is_some_and(|seen| seen.since.is_none()));
        let mut has_changed = false;
        if is_new {
            // What was stored when the agent started is a result of this container if it was reported after its
            // creation.
            let is_result_of_it = before.is_none() && self.probed_since(found.created);
            self.seen = Some(Seen {
                container: found.container.clone(),
                created: found.created,
                since: None,
            });
            self.cancel(call);
            if !is_result_of_it {
                has_changed = self.begin_anew(call);
                self.due = call.now;
            }
        }
        if found.life == Life::Ended {
            if let Some(seen) = &mut self.seen {
                seen.since = None;
            }
            return self.report_stopped(call) || has_changed;
        }
        if has_started {
            let started = found.started.unwrap_or(found.created);
            if let Some(seen) = &mut self.seen {
                seen.since = Some(started);
            }
            self.due = self.due.max(after(started, delay));
        }
        has_changed
    }

    fn report_stopped(&mut self, call: &mut Call<'_>) -> bool {
        self.cancel(call);
        self.streak = None;
        self.errors = 0;
        // Tools match on it.
        let message = format!("Container({}) is Non-running", self.container);
        self.publish(State::Failed, &message, call)
    }

    /// Does the result say that it cannot be run?
    fn is_not_run(&self) -> bool {
        let mut result = self.result.iter();
        result.any(|result| result.state == State::Unknown && result.message.starts_with(NOT_RUN))
    }

    fn probed_since(&self, time: Timestamp) -> bool {
        let probed = self.result.as_ref().and_then(|result| result.last_probe_time);
        probed.is_some_and(|probed| probed >= time)
    }

    /// What it does now that it is due.
    pub(super) fn turn(&mut self, now: Timestamp) -> Turn {
        let Ok(probe) = &self.probe else {
            return Turn::Waits;
        };
        let since = self.seen.as_ref().and_then(|seen| seen.since);
        let Some(ready) = since.map(|since| after(since, probe.initial_delay)) else {
            self.due = self.next(now);
            return Turn::Waits;
        };
        if ready > now {
            self.due = ready;
            return Turn::Waits;
        }
        Turn::Run(match probe.handler {
            Handler::Exec(_) => Kind::Command,
            Handler::Http { .. } | Handler::Tcp { .. } => Kind::Request,
        })
    }

    /// The first of its times that is later than this one.
    fn next(&self, now: Timestamp) -> Timestamp {
        let period = self
            .probe
            .as_ref()
            .map_or(1, |probe| probe.period.as_secs().max(1));
        let late = now.duration_since(self.due).max(SignedDuration::ZERO);
        let late = u64::try_from(late.as_secs()).unwrap_or_default();
        let periods = (late / period).saturating_add(1);
        after(
            self.due,
            std::time::Duration::from_secs(period.saturating_mul(periods)),
        )
    }

    pub(super) fn begin(&mut self, run: RunId, kind: Kind, call: &mut Call<'_>) {
        let (Ok(probe), Some(seen)) = (&self.probe, &self.seen) else {
            return;
        };
        self.running = Some((run, kind));
        call.emit(Effect::RunProbe(ProbeRun {
            run,
            container: seen.container.clone(),
            handler: probe.handler.clone(),
            timeout: probe.timeout,
        }));
    }

    pub(super) fn cancel(&mut self, call: &mut Call<'_>) {
        if let Some((run, _)) = self.running.take() {
            call.emit(Effect::CancelProbe(run));
        }
    }

    /// Its run has ended. Returns whether the result changes.
    pub(super) fn ended(&mut self, result: ProbeResult, call: &mut Call<'_>) -> bool {
        self.running = None;
        self.due = self.next(call.now);
        let Ok(probe) = &self.probe else {
            return false;
        };
        let (success, failure) = (probe.success_threshold, probe.failure_threshold);
        let (state, message, threshold) = match result {
            ProbeResult::Succeeded(message) => (State::Succeeded, message, success),
            ProbeResult::Failed(message) => (State::Failed, message, failure),
            ProbeResult::NotRun(Failure::Unavailable(_)) => return false,
            ProbeResult::NotRun(Failure::Failed(problem)) => {
                self.errors = self.errors.saturating_add(1);
                self.streak = None;
                // What runtimes say differs from run to run, such as by the identity of the process. The first text
                // stays.
                let is_known = self.errors > failure.max(MOST_ERRORS);
                let message = format!("{NOT_RUN}{problem}");
                return self.errors >= failure.max(MOST_ERRORS)
                    && !(is_known && self.is_not_run())
                    && self.publish(State::Unknown, &message, call);
            }
        };
        self.errors = 0;
        let before = self.streak.filter(|(before, _)| *before == state);
        let count = before.map_or(0, |(_, count)| count).saturating_add(1);
        self.streak = Some((state, count));
        count >= threshold && self.publish(state, &message, call)
    }

    /// This is the result now. Returns whether it differs from the one before.
    fn publish(&mut self, state: State, message: &str, call: &mut Call<'_>) -> bool {
        let message = beginning(message, MESSAGE);
        let before = self.result.as_ref();
        let is_same_state = before.is_some_and(|before| before.state == state);
        let is_same = is_same_state && before.is_some_and(|before| *before.message == *message);
        // An agent that starts later knows by the time whether a result is of this container.
        let seen = self.seen.as_ref().filter(|_| state != State::Unknown);
        let is_of_container = seen.is_none_or(|seen| self.probed_since(seen.created));
        let reported = before.and_then(|before| before.last_probe_time);
        let is_recent = reported.is_some_and(|time| call.now.duration_since(time) < MESSAGE_KEPT);
        if is_same_state && is_of_container && (is_same || is_recent) {
            return false;
        }
        let now = whole_seconds(call.now);
        let changed = before.and_then(|before| before.last_transition_time);
        self.result = Some(ProbeState {
            name: self.name.clone(),
            state,
            last_probe_time: Some(now),
            last_transition_time: changed.filter(|_| is_same_state).or(Some(now)),
            message: message.into(),
        });
        let reason = match state {
            State::Succeeded => &PROBE_SUCCEEDED,
            State::Failed => &PROBE_FAILED,
            State::Unknown | State::None => return true,
        };
        if !is_same_state {
            call.event(EventNote {
                about: self.about.clone(),
                reason,
                message: message.to_owned(),
                component: POD_PROBE,
            });
        }
        true
    }
}

/// The beginning of a text, at most so many bytes of whole characters.
fn beginning(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_between_characters() {
        assert_eq!(beginning("abc", 1024), "abc");
        assert_eq!(beginning("abc", 2), "ab");
        assert_eq!(beginning("aä", 2), "a");
        assert_eq!(beginning("ä", 1), "");
    }
}
