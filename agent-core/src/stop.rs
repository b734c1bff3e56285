//! Stops of containers, for the kubelet to start them anew.
//!
//! The preStop hook runs first, for at most the grace period; what it leaves of that period, and two seconds at
//! least, the container gets to end. Two stops of one container never run at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::names::agent::{FAILED_PRE_STOP_HOOK, KILLING};
use kruise_api::names::events::Reason;

use crate::call::{Call, after};
use crate::hook::Hook;
use crate::{About, ContainerId, Effect, EventNote};

/// What a container gets at least to end.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// Why and how a container is stopped.
pub(crate) struct Order {
    pub(crate) container: ContainerId,
    /// The container, for events.
    pub(crate) about: About,
    /// Who the events are from.
    pub(crate) component: &'static str,
    /// Why, for people.
    pub(crate) message: String,
    /// For the hook and the end together. Without any, the hook does not run.
    pub(crate) grace: Duration,
    /// The preStop hook, or why it cannot be run.
    pub(crate) hook: Result<Option<Hook>, String>,
}

/// The containers that are being stopped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stops(BTreeMap<ContainerId, Stop>);

/// A container that is being stopped.
#[derive(Clone, Debug)]
struct Stop {
    container: ContainerId,
    about: About,
    component: &'static str,
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

impl Stops {
    pub(crate) fn is_stopping(&self, container: &ContainerId) -> bool {
        self.0.contains_key(container)
    }

    /// Begins to stop a container, if it is not being stopped.
    pub(crate) fn begin(&mut self, order: Order, call: &mut Call<'_>) {
        if !self.is_stopping(&order.container) {
            self.0.insert(order.container.clone(), Stop::begin(order, call));
        }
    }

    /// The hook of a container has ended, well or badly.
    pub(crate) fn hook_ended(
        &mut self,
        container: &ContainerId,
        result: Result<(), Box<str>>,
        call: &mut Call<'_>,
    ) {
        if let Some(stop) = self.0.get_mut(container) {
            stop.hook_ended(result, call);
        }
    }

    /// The runtime has stopped a container, or failed to. Returns whether it was to.
    pub(crate) fn ended(&mut self, container: &ContainerId) -> bool {
        self.0.remove(container).is_some()
    }

    pub(crate) fn advance(&mut self, call: &mut Call<'_>) {
        for stop in self.0.values_mut() {
            stop.advance(call);
        }
    }

    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        self.0.values().filter_map(Stop::next_timer).min()
    }
}

impl Stop {
    fn begin(order: Order, call: &mut Call<'_>) -> Self {
        let mut stop = Self {
            container: order.container,
            about: order.about,
            component: order.component,
            grace: order.grace,
            began: call.now,
            step: Step::Stopping,
        };
        stop.report(&KILLING, order.message, call);
        let hook = if stop.grace.is_zero() {
            Ok(None)
        } else {
            order.hook
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
                stop.report_hook(&problem, call);
                stop.stop(call);
            }
        }
        stop
    }

    fn hook_ended(&mut self, result: Result<(), Box<str>>, call: &mut Call<'_>) {
        if self.step != Step::RunningHook {
            return;
        }
        if let Err(problem) = result {
            self.report_hook(&problem, call);
        }
        self.stop(call);
    }

    fn advance(&mut self, call: &mut Call<'_>) {
        if self.next_timer().is_some_and(|until| until <= call.now) {
            self.stop(call);
        }
    }

    fn next_timer(&self) -> Option<Timestamp> {
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

    fn report_hook(&self, problem: &str, call: &mut Call<'_>) {
        let message = format!("PreStop hook failed: {problem}");
        self.report(&FAILED_PRE_STOP_HOOK, message, call);
    }

    fn report(&self, reason: &'static Reason, message: String, call: &mut Call<'_>) {
        call.event(EventNote {
            about: self.about.clone(),
            reason,
            message,
            component: self.component,
        });
    }
}
