//! *"What an agent reports of a container is final once it is dealt with, and a container that succeeded is a new one. A
//! request that ended stays as it ended."*

use kruise_api::names::agent::CONTAINER_RECREATE;

use super::super::request::POD_UID;
use super::super::start::REQUESTS;
use super::known::{end, has_ended, states};
use super::stops::is_final;
use crate::rules::prelude::*;

/// Judges writes of agents.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.component != CONTAINER_RECREATE || write.resource != REQUESTS.plural {
        return None;
    }
    let [before, new] = write.both(mirror, REQUESTS)?;
    never!(write, "an end is final",
        has_ended(before) && end(before) != end(new) => "{:?} was {:?}", end(new), end(before));
    for old in states(before).filter(|state| is_final(state)) {
        let now = states(new).find(|state| state["name"] == old["name"]);
        never!(write, "what became of a container is final",
            now.is_none_or(|now| now["phase"] != old["phase"]) => "{old} is {now:?}");
    }
    let ends = !has_ended(before) && has_ended(new);
    never!(write, "a request ends when its containers are dealt with",
        some what in ended_early(new).filter(|_| ends) => "{what}");
    never!(write, "a container that succeeded is a new one",
        some state in states(new).find(|state| is_unreplaced(state, new, mirror)) => "{state}");
    None
}

/// What an agent has not dealt with in a request that it ends.
fn ended_early(request: &Object) -> Option<String> {
    let value = request.value();
    let ignores = value["spec"]["strategy"]["failurePolicy"] == "Ignore";
    let has_failed = states(request).any(|state| state["phase"] == "Failed");
    let says_why = !text(&value["status"]["message"]).is_empty();
    if (has_failed && !ignores) || says_why {
        return None;
    }
    let mut containers = value["spec"]["containers"].as_array()?.iter();
    let is_dealt_with =
        |one: &&Value| states(request).any(|state| state["name"] == one["name"] && is_final(state));
    let open = containers.find(|one| !is_dealt_with(one))?;
    Some(format!("{} of {}", open["name"], value["status"]))
}

/// Is a container said to have succeeded although its pod never had another one?
fn is_unreplaced(state: &Value, request: &Object, mirror: &Mirror) -> bool {
    // One that has ended for good has no successor, and the state says so.
    if state["phase"] != "Succeeded" || !state["message"].is_null() {
        return false;
    }
    let mut containers = items(&request.value()["spec"]["containers"]);
    let Some(of_request) = containers.find(|one| one["name"] == state["name"]) else {
        return true;
    };
    let id = &of_request["statusContext"]["containerID"];
    let versions = mirror.of(PODS).objects.get(request.label(POD_UID));
    let mut versions = versions.into_iter().flatten();
    !versions.any(|pod| {
        let mut statuses = items(&pod.value()["status"]["containerStatuses"]);
        statuses.any(|one| {
            one["name"] == state["name"] && one["containerID"] != *id && !one["containerID"].is_null()
        })
    })
}
