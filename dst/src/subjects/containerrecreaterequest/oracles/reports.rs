//! *"What an agent reports of a container is final once it is dealt with, and a container that succeeded is a new one. A
//! request that ended stays as it ended."*

use kruise_api::names::agent::CONTAINER_RECREATE;
use serde_json::Value;

use super::known::{change, has_ended};
use super::stops::is_final;
use crate::engine::oracles::{Mirror, Object, PODS, Violation, Write};
use crate::subjects::containerrecreaterequest::{request::POD_UID, start::REQUESTS};

/// Judges writes of agents.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.component != CONTAINER_RECREATE || write.resource != REQUESTS.plural {
        return None;
    }
    let violation = |oracle, what: String| {
        let what = format!("{} wrote {}: {what}", write.process, write.name);
        Some(Violation { oracle, what })
    };
    let [before, new] = change(write, mirror)?;
    let end = |request: &Object| {
        let status = &request.value()["status"];
        ["phase", "completionTime", "message"].map(|member| status[member].clone())
    };
    if has_ended(before) && end(before) != end(new) {
        return violation("an end is final", format!("{:?} was {:?}", end(new), end(before)));
    }
    for old in states(before).filter(|state| is_final(state)) {
        let now = states(new).find(|state| state["name"] == old["name"]);
        if now.is_none_or(|now| now["phase"] != old["phase"]) {
            return violation("what became of a container is final", format!("{old} is {now:?}"));
        }
    }
    if !has_ended(before)
        && has_ended(new)
        && let Some(what) = ended_early(new)
    {
        return violation("a request ends when its containers are dealt with", what);
    }
    let mut unreplaced = states(new).filter(|state| is_unreplaced(state, new, mirror));
    let state = unreplaced.next()?;
    violation("a container that succeeded is a new one", state.to_string())
}

fn states(request: &Object) -> impl Iterator<Item = &Value> {
    let states = request.value()["status"]["containerRecreateStates"].as_array();
    states.into_iter().flatten()
}

/// What an agent has not dealt with in a request that it ends.
fn ended_early(request: &Object) -> Option<String> {
    let value = request.value();
    let ignores = value["spec"]["strategy"]["failurePolicy"] == "Ignore";
    let has_failed = states(request).any(|state| state["phase"] == "Failed");
    let says_why = !value["status"]["message"].as_str().unwrap_or_default().is_empty();
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
    let containers = request.value()["spec"]["containers"].as_array();
    let mut containers = containers.into_iter().flatten();
    let Some(of_request) = containers.find(|one| one["name"] == state["name"]) else {
        return true;
    };
    let id = &of_request["statusContext"]["containerID"];
    let versions = mirror.of(PODS).objects.get(request.label(POD_UID));
    let mut versions = versions.into_iter().flatten();
    !versions.any(|pod| {
        let statuses = pod.value()["status"]["containerStatuses"].as_array();
        let mut statuses = statuses.into_iter().flatten();
        statuses.any(|one| {
            one["name"] == state["name"] && one["containerID"] != *id && !one["containerID"].is_null()
        })
    })
}
