//! Oracles of sidecars that end with their main containers, written from the specification.

use kruise_api::names::sidecarterminator::{
    SIDECAR_IGNORE_EXIT_CODE, TERMINATE_SIDECAR, TERMINATE_SIDECAR_WITH_IMAGE,
};
use kruise_sim::runtime::Call;

use super::start::VIRTUAL;
use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::{REQUESTS, Stops, is_open};

/// What judges the terminations of a scenario.
#[derive(Default)]
pub struct SidecarTerminatorOracles {
    stops: Stops,
}

impl Oracles for SidecarTerminatorOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        match write.resource {
            "containerrecreaterequests" => judge_request(write, mirror),
            "pods" => judge_pod(write, mirror),
            _ => None,
        }
    }

    /// *"An agent stops sidecars only, once all main containers have ended."*
    fn judge_call(&mut self, call: &RuntimeCall<'_>, mirror: &Mirror) -> Option<Violation> {
        let Call::StopContainer { container, .. } = call.call else {
            return None;
        };
        let (pod, name) = reported(container, mirror)?;
        never!(call, "a main container is never stopped",
            !containers(pod).any(|one| one["name"] == *name && is_sidecar(one)) => "it is {name} of {}", pod.name);
        never!(call, "nothing is stopped before the main containers have ended",
            !have_mains_ended(pod) => "{}", pod.status()["containerStatuses"]);
        self.stops.judge(call, mirror)
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        for job in mirror.of(JOBS).now() {
            let has_ended = ["Complete", "Failed"]
                .iter()
                .any(|kind| job.state(kind) == "True");
            wrong!(job.is_going() || !has_ended => "job {} has not ended: {}", job.name, job.status());
        }
        for pod in mirror.of(PODS).now().filter(|pod| pod.label("app") == "report") {
            wrong!(pod.is_going() || pod.end().is_none() => "{} has not ended", pod.name);
            let mut statuses = items(&pod.status()["containerStatuses"]);
            let running = statuses.find(|one| !one["state"]["running"].is_null());
            wrong!(some running in running.filter(|_| !is_failed_by_others(pod))
                => "{} of {} runs", running["name"], pod.name);
        }
        for request in mirror.of(REQUESTS).now() {
            let pod = mirror.last(PODS, request.owner());
            // Nobody starts the containers of a pod that has ended, and its agent may have read the pod before.
            let has_ended = pod.is_some_and(|pod| pod.end().is_some());
            let mut states = items(&request.status()["containerRecreateStates"]);
            let says_why = states.any(|state| !text(&state["message"]).is_empty());
            wrong!(!(request.is_completed() || has_ended && says_why)
                => "{} has not ended: {}", request.name, request.status());
        }
        let pods = mirror.of(PODS).objects.values();
        let mut alive = pods.filter_map(|versions| versions.iter().rev().find(|pod| !pod.is_going()));
        wrong!(some what in alive.find_map(|pod| wrong_phase(pod)) => "{what}");
        Ok(())
    }

    /// A pod has a request with an event, which its agent reports on three times, and which is released.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<usize> {
        let running = mirror.of(PODS).now().filter(|pod| pod.is_active());
        Some(running.count() * 7)
    }
}

/// *"A request is for sidecars that run, once all main containers have ended. Those whose exit codes do not count
/// come last. One request of a pod comes after the other."*
fn judge_request(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.method != Method::Post {
        never!(write, "requests are created and ended",
            write.method != Method::Patch || write.subresource != "status" => "{}", write.body);
        never!(write, "a request that is at work goes on",
            some container in at_work(write, mirror) => "{container}");
        return None;
    }
    let (metadata, wanted) = (&write.body["metadata"], items(&write.body["spec"]["containers"]));
    let owner = text(&metadata["ownerReferences"][0]["uid"]);
    let versions = write.sees(mirror, PODS, owner).versions;
    never!(write, "a request belongs to its pod", versions.is_empty() => "{}", write.body);
    let newest = versions.last()?;
    // What has ended for good has so in the newest version.
    never!(write, "nothing is stopped before the main containers have ended",
        !have_mains_ended(newest) => "{}", newest.status()["containerStatuses"]);
    never!(write, "sidecars on virtual nodes get their image", is_on_virtual(newest) => "{}", newest.name);
    for name in wanted.map(|one| &one["name"]) {
        let sidecar = named(&newest.spec()["containers"], name).filter(|one| is_sidecar(one));
        never!(write, "a main container is never stopped", sidecar.is_none() => "{name}");
        let is_ignored = is_ignored(sidecar?);
        let is_its_turn = |pod: &Arc<Object>| !is_ignored || have_others_ended(pod);
        never!(write, "sidecars whose exit codes count end first",
            !versions.iter().any(is_its_turn) => "{name}");
        // The phase and the request are written in one go.
        never!(write, "a pod ends before sidecars that do not count",
            is_ignored && newest.end().is_none() && !newest.is_going() => "{name}");
        never!(write, "what has ended is not stopped",
            versions.iter().all(|pod| code(pod, name).is_some()) => "{name}");
    }
    let mut others = mirror.of(REQUESTS).now();
    let open = others.find(|one| one.owner() == owner && metadata["name"] != *one.name && is_open(one));
    never!(write, "one request of a pod after the other", some open in open => "{}", open.name);
    None
}

/// A container that a request which is ended has yet to stop, as far as its sender may have believed.
fn at_work<'m>(write: &Write<'_>, mirror: &'m Mirror) -> Option<&'m Value> {
    let request = mirror.of(REQUESTS).named(write.name)?;
    let versions = write.sees(mirror, PODS, request.owner()).versions;
    let is_done = |container: &Value, pod: &Arc<Object>| {
        let name = &container["name"];
        let status = named(&pod.status()["containerStatuses"], name);
        let is_new =
            status.is_some_and(|one| one["containerID"] != container["statusContext"]["containerID"]);
        is_new || code(pod, name).is_some()
    };
    let mut wanted = items(&request.spec()["containers"]);
    let open = wanted.find(|container| !versions.iter().any(|pod| is_done(container, pod)));
    open.filter(|_| !versions.is_empty()).map(|open| &open["name"])
}

/// *"Of a pod is written how it ended, once, as its main containers did; and on a virtual node the images of its
/// sidecars."*
fn judge_pod(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    let statuses = &before.status()["containerStatuses"];
    never!(write, "pods are patched only", write.method != Method::Patch => "{:?}", write.method);
    never!(write, "nothing is stopped before the main containers have ended",
        !have_mains_ended(before) => "{statuses}");
    if write.subresource == "status" {
        let (had, has) = (before.end(), after.end());
        never!(write, "an end is final", had.is_some() && had != has => "{had:?} is {has:?}");
        never!(write, "the phase is that of the main containers",
            has != earned_phase(before) => "{has:?}, and not {:?}", earned_phase(before));
        let is_for_ignored = containers(before).any(is_ignored) && !is_on_virtual(before);
        never!(write, "sidecars whose exit codes count end first",
            !is_for_ignored || !have_others_ended(before) => "{statuses}");
        return None;
    }
    let image = |name: &Value| named(&before.spec()["containers"], name).map(|one| &one["image"]);
    let mut changed = containers(after).filter(|one| image(&one["name"]) != Some(&one["image"]));
    let is_last = |one: &Value| one["image"] == variable(one, TERMINATE_SIDECAR_WITH_IMAGE);
    let is_right = |one: &Value| is_on_virtual(before) && is_sidecar(one) && is_last(one);
    never!(write, "only images of sidecars on virtual nodes change",
        some wrong in changed.find(|one| !is_right(one)) => "{wrong}");
    None
}

/// Did somebody else fail it? Then its node does nothing more for it.
fn is_failed_by_others(pod: &Object) -> bool {
    pod.status()["reason"] == "Evicted"
}

/// The phase of a pod that is not what its main containers have earned, although no other container counts.
fn wrong_phase(pod: &Object) -> Option<String> {
    let mut sidecars = containers(pod).filter(|one| is_sidecar(one)).peekable();
    let counts_none = sidecars.peek().is_some() && sidecars.all(is_ignored) && !is_on_virtual(pod);
    let counts_mains = counts_none || pod.state("SidecarTerminated") == "True";
    if !counts_mains || is_failed_by_others(pod) {
        return None;
    }
    let (has, earned) = (pod.end()?, earned_phase(pod)?);
    (has != earned).then(|| format!("{} is {has}, and its main containers {earned}", pod.name))
}

/// The newest version of the pod that reported a container of this id, and the name of the container.
fn reported<'m>(container: &str, mirror: &'m Mirror) -> Option<(&'m Object, &'m Value)> {
    let end = format!("://{container}");
    let name = |pod: &'m Arc<Object>| {
        let mut statuses = items(&pod.status()["containerStatuses"]);
        Some(&statuses.find(|one| text(&one["containerID"]).ends_with(&end))?["name"])
    };
    let mut pods = mirror.of(PODS).objects.values();
    pods.find_map(|versions| Some((&**versions.last()?, versions.iter().rev().find_map(name)?)))
}

/// The containers of a pod.
fn containers(pod: &Object) -> impl Iterator<Item = &Value> {
    items(&pod.spec()["containers"])
}

/// The value of a variable of a container, or `""`.
fn variable<'c>(container: &'c Value, name: &str) -> &'c str {
    named(&container["env"], name).map_or("", |one| text(&one["value"]))
}

/// Is it a container that ends with the main ones?
fn is_sidecar(container: &Value) -> bool {
    variable(container, TERMINATE_SIDECAR) == "true"
}

/// Does its exit code not count?
fn is_ignored(container: &Value) -> bool {
    is_sidecar(container) && variable(container, SIDECAR_IGNORE_EXIT_CODE) == "true"
}

/// Is the pod on the virtual node?
fn is_on_virtual(pod: &Object) -> bool {
    pod.spec()["nodeName"] == VIRTUAL
}

/// With which code a container has ended that has not begun anew.
fn code(pod: &Object, name: &Value) -> Option<i64> {
    pod.container_status(name.clone())["state"]["terminated"]["exitCode"].as_i64()
}

/// The exit codes of the main containers, once all have ended.
fn codes_of_mains(pod: &Object) -> Option<Vec<i64>> {
    let mains = containers(pod).filter(|one| !is_sidecar(one));
    mains.map(|main| code(pod, &main["name"])).collect()
}

/// Have all main containers ended for good? That is never taken back.
fn have_mains_ended(pod: &Object) -> bool {
    let is_never_restarted = pod.spec()["restartPolicy"] == "Never";
    let codes = codes_of_mains(pod);
    codes.is_some_and(|codes| is_never_restarted || codes.iter().all(|code| *code == 0))
}

/// The phase that the main containers have earned, once all have ended.
fn earned_phase(pod: &Object) -> Option<&'static str> {
    let have_succeeded = codes_of_mains(pod)?.iter().all(|code| *code == 0);
    Some(if have_succeeded { "Succeeded" } else { "Failed" })
}

/// Have all sidecars ended whose exit codes count?
fn have_others_ended(pod: &Object) -> bool {
    let mut others = containers(pod).filter(|one| is_sidecar(one) && !is_ignored(one));
    others.all(|one| code(pod, &one["name"]).is_some())
}
