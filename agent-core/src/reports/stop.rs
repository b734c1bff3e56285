//! Stops of containers, for the kubelet to start them anew.
//!
//! The preStop hook runs first, for at most the grace period; what it leaves of that period, and two seconds at least, the
//! container gets to end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::names::agent::{CONTAINER_META, FAILED_PRE_STOP_HOOK, KILLING};
use kruise_api::names::events::Reason;
use kruise_views::NodePodView;

use crate::call::{Call, after};
use crate::{About, ContainerId, Effect, EventNote, RuntimeContainer};

use super::annotations::{self, Hook};

/// What a container gets at least to end.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// A container that is being stopped.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) container: ContainerId,
    /// UID of its pod.
    pub(super) pod: Box<str>,
    /// Its name there.
    pub(super) name: Box<str>,
    about: About,
    grace: Duration,
    began: Timestamp,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    RunningHook,
    Sleeping(Timestamp),
    Stopping,
}

impl Stop {
    /// Begins to stop a container.
    pub(super) fn begin(
        container: ContainerId,
        of: &RuntimeContainer,
        pod: &NodePodView,
        call: &mut Call<'_>,
    ) -> Self {
        let mut stop = Self {
            container,
            pod: pod.uid.clone(),
            name: of.name.clone(),
            about: About::Container {
                namespace: pod.namespace.clone(),
                pod: pod.name.clone(),
                uid: pod.uid.clone(),
                container: of.name.clone(),
            },
            grace: Duration::from_secs(annotations::grace(of)),
            began: call.now,
            step: Step::Stopping,
        };
        let message = format!(
            "Stopping container {}: its environment differs from the labels and annotations of its pod",
            of.name
        );
        stop.report(&KILLING, message, call);
        let hook = if stop.grace.is_zero() {
            Ok(None)
        } else {
            annotations::hook(of, pod.ip.as_deref())
        };
        match hook {
            Ok(Some(Hook::Run(hook))) => {
                stop.step = Step::RunningHook;
                call.emit(Effect::RunPreStop {
                    container: stop.container.clone(),
                    hook,
                    timeout: stop.grace,
                });
            }
            Ok(Some(Hook::Sleep(seconds))) => {
                let sleep = Duration::from_secs(seconds).min(stop.grace);
                stop.step = Step::Sleeping(after(call.now, sleep));
            }
            Ok(None) => stop.stop(call),
            Err(problem) => {
                stop.report(
                    &FAILED_PRE_STOP_HOOK,
                    format!("PreStop hook failed: {problem}"),
                    call,
                );
                stop.stop(call);
            }
        }
        stop
    }

    /// The hook has ended, well or badly.
    pub(super) fn hook_ended(&mut self, result: Result<(), Box<str>>, call: &mut Call<'_>) {
        if self.step != Step::RunningHook {
            return;
        }
        if let Err(problem) = result {
            self.report(
                &FAILED_PRE_STOP_HOOK,
                format!("PreStop hook failed: {problem}"),
                call,
            );
        }
        self.stop(call);
    }

    pub(super) fn advance(&mut self, call: &mut Call<'_>) {
        if self.next_timer().is_some_and(|until| until <= call.now) {
            self.stop(call);
        }
    }

    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        match self.step {
            Step::Sleeping(until) => Some(until),
            Step::RunningHook | Step::Stopping => None,
        }
    }

    fn stop(&mut self, call: &mut Call<'_>) {
        self.step = Step::Stopping;
        let elapsed = call.now.duration_since(self.began).max(SignedDuration::ZERO);
        let left = self
            .grace
            .saturating_sub(Duration::try_from(elapsed).unwrap_or_default());
        call.emit(Effect::StopContainer {
            container: self.container.clone(),
            grace: left.max(LEAST_GRACE),
        });
    }

    fn report(&self, reason: &'static Reason, message: String, call: &mut Call<'_>) {
        call.event(EventNote {
            about: self.about.clone(),
            reason,
            message,
            component: CONTAINER_META,
        });
    }
}
