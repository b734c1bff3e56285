//! *"A request is for sidecars that run, once all main containers have ended. Those whose exit codes do not count come last. One
//! request of a pod comes after the other."*

use super::known::{
    believed, code, containers, have_mains_ended, have_others_ended, is_ignored, is_on_virtual, is_sidecar,
    phase,
};
use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::REQUESTS;
use crate::subjects::containerrecreaterequest::request::is_open;

/// Judges writes of requests.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != REQUESTS.plural {
        return None;
    }
    let name = write.body["metadata"]["name"].as_str().unwrap_or(write.name);
    if write.method != Method::Post {
        never!(write, "requests are created and ended",
            write.method != Method::Patch || write.subresource != "status" => "{}", write.body);
        let container = at_work(write, mirror)?;
        return write.breaks("a request that is at work goes on", container);
    }
    let owner = write.body["metadata"]["ownerReferences"][0]["uid"].as_str();
    let Some((versions, newest)) = owner.and_then(|uid| believed(write, mirror, uid)) else {
        return write.breaks("a request belongs to its pod", write.body.to_string());
    };
    // What has ended for good has so in the newest version.
    never!(write, "nothing is stopped before the main containers have ended",
        !have_mains_ended(newest) => "{}", newest.value()["status"]["containerStatuses"]);
    never!(write, "sidecars on virtual nodes get their image", is_on_virtual(newest) => "{}", newest.name);
    for wanted in items(&write.body["spec"]["containers"]) {
        let name = &wanted["name"];
        let container = containers(newest).find(|one| one["name"] == *name);
        let Some(container) = container.filter(|one| is_sidecar(one)) else {
            return write.breaks("a main container is never stopped", name.to_string());
        };
        let is_its_turn = |pod: &Arc<Object>| !is_ignored(container) || have_others_ended(pod);
        never!(write, "sidecars whose exit codes count end first",
            !versions.iter().any(is_its_turn) => "{}", name);
        // The phase and the request are written in one go.
        never!(write, "a pod ends before sidecars that do not count",
            is_ignored(container) && phase(newest).is_none() && !newest.is_going() => "{}", name);
        never!(write, "what has ended is not stopped",
            versions.iter().all(|pod| code(pod, name).is_some()) => "{}", name);
    }
    let mut others = mirror.of(REQUESTS).now();
    let open = others.find(|one| Some(one.owner()) == owner && *one.name != *name && is_open(one))?;
    write.breaks("one request of a pod after the other", open.name.to_string())
}

/// A container that a request which is ended has yet to stop, as far as its sender may have believed.
fn at_work(write: &Write<'_>, mirror: &Mirror) -> Option<String> {
    let request = mirror.of(REQUESTS).named(write.name)?;
    let (versions, _) = believed(write, mirror, request.owner())?;
    let mut wanted = items(&request.value()["spec"]["containers"]);
    let is_done = |container: &Value, pod: &Arc<Object>| {
        let name = &container["name"];
        let mut statuses = items(&pod.value()["status"]["containerStatuses"]);
        let status = statuses.find(|status| status["name"] == *name);
        let is_new =
            status.is_some_and(|status| status["containerID"] != container["statusContext"]["containerID"]);
        is_new || code(pod, name).is_some()
    };
    let open = wanted.find(|container| !versions.iter().any(|pod| is_done(container, pod)))?;
    Some(open["name"].to_string())
}
