//! *"What an agent reports of a container is final once it is dealt with, and a container that succeeded is a new
//! one. A request that ended stays as it ended."*

use kruise_api::names::agent::CONTAINER_RECREATE;

use super::super::start::{POD_UID, REQUESTS};
use super::facts::{end, is_final, states};
use crate::rules::prelude::*;

/// Judges writes of agents.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.component != CONTAINER_RECREATE || write.resource != REQUESTS.plural {
        return None;
    }
    let [before, new] = write.both(mirror, REQUESTS)?;
    never!(write, "an end is final",
        before.is_completed() && end(before) != end(new) => "{:?} was {:?}", end(new), end(before));
    for old in states(before).filter(|state| is_final(state)) {
        let now = states(new).find(|state| state["name"] == old["name"]);
        never!(write, "what became of a container is final",
            now.is_none_or(|now| now["phase"] != old["phase"]) => "{old} is {now:?}");
    }
    let ends = !before.is_completed() && new.is_completed();
    never!(write, "a request ends when its containers are dealt with",
        some name in left_open(new).filter(|_| ends) => "{name} of {}", new.status());
    never!(write, "a container that succeeded is a new one",
        some state in states(new).find(|state| is_unreplaced(state, new, mirror)) => "{state}");
    None
}

/// What an agent has not dealt with in a request that does not say why it ends.
fn left_open(request: &Object) -> Option<&Value> {
    let (spec, status) = (request.spec(), request.status());
    let ignores = spec["strategy"]["failurePolicy"] == "Ignore";
    let has_failed = states(request).any(|state| state["phase"] == "Failed");
    if (has_failed && !ignores) || !text(&status["message"]).is_empty() {
        return None;
    }
    let is_dealt_with = |name: &Value| states(request).any(|state| state["name"] == *name && is_final(state));
    let mut names = items(&spec["containers"]).map(|one| &one["name"]);
    names.find(|name| !is_dealt_with(name))
}

/// Is a container said to have succeeded although its pod never had another one?
fn is_unreplaced(state: &Value, request: &Object, mirror: &Mirror) -> bool {
    // One that has ended for good has no successor, and the state says so.
    if state["phase"] != "Succeeded" || !state["message"].is_null() {
        return false;
    }
    let Some(of_request) = named(&request.spec()["containers"], &state["name"]) else {
        return true;
    };
    let id = &of_request["statusContext"]["containerID"];
    let is_new = |pod: &Arc<Object>| {
        let now = &pod.container_status(state["name"].clone())["containerID"];
        now != id && !now.is_null()
    };
    !mirror.versions(PODS, request.label(POD_UID)).iter().any(is_new)
}
