//! The state that must be reached after the last edit and the last fault.

use super::super::start::REQUESTS;
use super::known::{has_ended, is_held, keys, pod_of};
use crate::rules::prelude::*;

/// Does the status of a request say what it waits for?
fn says_why(request: &Value) -> bool {
    let states = items(&request["status"]["containerRecreateStates"]);
    let mut all = states.chain([&request["status"]]);
    all.any(|one| !text(&one["message"]).is_empty())
}

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, now: Timestamp) -> Result<(), String> {
    for request in mirror.of(REQUESTS).now() {
        let (name, value) = (&request.name, request.value());
        wrong!(request.is_going() => "{name} is still being deleted");
        if !has_ended(request) {
            // Nobody starts the containers of a pod that has failed.
            let has_failed = pod_of(request, mirror).is_some_and(|pod| !pod.gone && !pod.is_active());
            if has_failed && value["spec"]["activeDeadlineSeconds"].is_null() && says_why(value) {
                continue;
            }
            return Err(format!("{name} has not ended: {}", value["status"]));
        }
        wrong!(request.has_label("crr.apps.kruise.io/active") || is_held(request)
            => "{name} has ended, and is still watched or held back");
        let due = after(
            &value["status"]["completionTime"],
            &value["spec"]["ttlSecondsAfterFinished"],
        );
        wrong!(due.is_some() => "{name} is to be deleted at {due:?}, and it is {now}");
    }
    for pod in mirror.of(PODS).now().filter(|pod| pod.is_active()) {
        wrong!(some key in keys(pod).first() => "{key} keeps {} out of service", pod.name);
    }
    Ok(())
}
