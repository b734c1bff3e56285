//! Oracles of ContainerRecreateRequests, written from their specification.

mod facts;
mod reports;
mod requests;
mod stops;

use super::start::REQUESTS;
use crate::rules::prelude::*;
use facts::{is_held, keys, pod_of};
pub use stops::Stops;

/// What judges the requests of a scenario.
#[derive(Default)]
pub struct ContainerRecreateRequestOracles {
    written: requests::Written,
    stops: Stops,
}

impl Oracles for ContainerRecreateRequestOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        requests::judge_pod(write, mirror)
            .or_else(|| requests::judge(write, mirror))
            .or_else(|| self.written.judge(write, mirror))
    }

    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        reports::judge(write, mirror)
    }

    fn judge_call(&mut self, call: &RuntimeCall<'_>, mirror: &Mirror) -> Option<Violation> {
        self.stops.judge(call, mirror)
    }

    fn unfinished(&self, mirror: &Mirror, now: Timestamp, _: &Value) -> Result<(), String> {
        for request in mirror.of(REQUESTS).now() {
            let (name, spec, status) = (&request.name, request.spec(), request.status());
            wrong!(request.is_going() => "{name} is still being deleted");
            if !request.is_completed() {
                // Containers of a failed pod are not started again.
                let has_failed = pod_of(request, mirror).is_some_and(|pod| !pod.gone && !pod.is_active());
                let is_stuck = has_failed && spec["activeDeadlineSeconds"].is_null() && says_why(status);
                wrong!(!is_stuck => "{name} has not ended: {status}");
                continue;
            }
            wrong!(request.has_label("crr.apps.kruise.io/active") || is_held(request)
                => "{name} has ended, and is still watched or held back");
            let due = after(&status["completionTime"], &spec["ttlSecondsAfterFinished"]);
            wrong!(due.is_some() => "{name} is to be deleted at {due:?}, and it is {now}");
        }
        for pod in mirror.of(PODS).now().filter(|pod| pod.is_active()) {
            wrong!(some key in keys(pod).first() => "{key} keeps {} out of service", pod.name);
        }
        Ok(())
    }

    /// Each open request is held back, reported on four times, ended and released, and its containers have events.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<usize> {
        let open = mirror
            .of(REQUESTS)
            .now()
            .filter(|request| !request.is_completed());
        Some(open.count() * 9)
    }
}

/// Has a request ended, by its phase or by its time?
pub fn has_ended(request: &Object) -> bool {
    request.is_completed() || request.status()["phase"] == "Completed"
}

/// Is an agent still to deal with a request?
pub fn is_open(request: &Object) -> bool {
    !request.is_going() && !has_ended(request)
}

/// Does the status of a request say what it waits for?
fn says_why(status: &Value) -> bool {
    let mut all = items(&status["containerRecreateStates"]).chain([status]);
    all.any(|one| !text(&one["message"]).is_empty())
}
