//! The state that must be reached after the last edit and the last fault.

use jiff::Timestamp;
use serde_json::Value;

use super::known::{after, has_ended, is_held, keys, pod_of};
use crate::engine::oracles::{Mirror, PODS};
use crate::subjects::containerrecreaterequest::start::REQUESTS;

/// Does the status of a request say what it waits for?
fn says_why(request: &Value) -> bool {
    let states = request["status"]["containerRecreateStates"].as_array();
    let states = states.into_iter().flatten();
    let mut all = states.chain([&request["status"]]);
    all.any(|one| !one["message"].as_str().unwrap_or_default().is_empty())
}

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, now: Timestamp) -> Result<(), String> {
    for request in mirror.of(REQUESTS).now() {
        let (name, value) = (&request.name, request.value());
        if request.is_going() {
            return Err(format!("{name} is still being deleted"));
        }
        if !has_ended(request) {
            // Nobody starts the containers of a pod that has failed.
            let has_failed = pod_of(request, mirror).is_some_and(|pod| !pod.gone && !pod.is_active());
            if has_failed && value["spec"]["activeDeadlineSeconds"].is_null() && says_why(value) {
                continue;
            }
            return Err(format!("{name} has not ended: {}", value["status"]));
        }
        if request.has_label("crr.apps.kruise.io/active") || is_held(request) {
            return Err(format!("{name} has ended, and is still watched or held back"));
        }
        let due = after(
            &value["status"]["completionTime"],
            &value["spec"]["ttlSecondsAfterFinished"],
        );
        if due.is_some() {
            return Err(format!("{name} is to be deleted at {due:?}, and it is {now}"));
        }
    }
    for pod in mirror.of(PODS).now().filter(|pod| pod.is_active()) {
        if let Some(key) = keys(pod).first() {
            return Err(format!("{key} keeps {} out of service", pod.name));
        }
    }
    Ok(())
}
