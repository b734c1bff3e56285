//! The state that must be reached after the last edit and the last fault.

use super::known::{containers, earned_phase, is_ignored, is_on_virtual, is_sidecar, phase};
use crate::engine::resource::JOBS;
use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::REQUESTS;

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror) -> Result<(), String> {
    for job in mirror.of(JOBS).now() {
        let has_ended = ["Complete", "Failed"]
            .iter()
            .any(|kind| job.state(kind) == "True");
        wrong!(job.is_going() || !has_ended => "job {} has not ended: {}", job.name, job.value()["status"]);
    }
    let pods = || {
        mirror
            .of(PODS)
            .objects
            .values()
            .filter_map(|versions| alive(versions))
    };
    for pod in mirror.of(PODS).now().filter(|pod| pod.label("app") == "report") {
        wrong!(pod.is_going() || phase(pod).is_none() => "{} has not ended", pod.name);
        let mut statuses = items(&pod.value()["status"]["containerStatuses"]);
        let running = statuses.find(|one| !one["state"]["running"].is_null());
        wrong!(some running in running.filter(|_| !is_failed_by_others(pod))
            => "{} of {} runs", running["name"], pod.name);
    }
    for request in mirror.of(REQUESTS).now() {
        let status = &request.value()["status"];
        let pod = mirror.of(PODS).objects.get(request.owner());
        // Nobody starts the containers of a pod that has ended, and its agent may have read the pod before.
        let has_ended = pod.is_some_and(|pod| pod.last().is_some_and(|pod| phase(pod).is_some()));
        wrong!(status["completionTime"].is_null() && !(has_ended && says_why(status))
            => "{} has not ended: {status}", request.name);
    }
    match pods().find_map(wrong_phase) {
        Some(what) => Err(what),
        None => Ok(()),
    }
}

/// Does the status of a request say what it waits for?
fn says_why(status: &Value) -> bool {
    let mut states = items(&status["containerRecreateStates"]);
    states.any(|state| !text(&state["message"]).is_empty())
}

/// The newest version of a pod that was not being deleted.
fn alive(versions: &[Arc<Object>]) -> Option<&Object> {
    let mut newest_first = versions.iter().rev();
    newest_first.find(|pod| !pod.is_going()).map(|pod| &**pod)
}

/// Did somebody else fail it? Then its node does nothing more for it.
fn is_failed_by_others(pod: &Object) -> bool {
    pod.value()["status"]["reason"] == "Evicted"
}

/// The phase of a pod that is not what its main containers have earned, although no other container counts.
fn wrong_phase(pod: &Object) -> Option<String> {
    let mut sidecars = containers(pod).filter(|one| is_sidecar(one)).peekable();
    let counts_none = sidecars.peek().is_some() && sidecars.all(is_ignored) && !is_on_virtual(pod);
    let counts_mains = counts_none || pod.state("SidecarTerminated") == "True";
    if !counts_mains || is_failed_by_others(pod) {
        return None;
    }
    let (has, earned) = (phase(pod)?, earned_phase(pod)?);
    (has != earned).then(|| format!("{} is {has}, and its main containers {earned}", pod.name))
}
