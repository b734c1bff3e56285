//! *"A container is stopped once for a request: after that is stored, after its pod was out of service for as long as is wanted,
//! in its order, and one request of a pod after the other."*

use kruise_sim::runtime::Call;

use super::super::request::POD_UID;
use super::super::start::REQUESTS;
use super::known::{grace, has_ended, has_gate, has_key, is_there, pod_of, states};
use crate::rules::prelude::*;

/// What agents have stopped.
#[derive(Default)]
pub struct Stops {
    /// Ids of containers, by request and name of the container.
    stopped: BTreeMap<(String, String), String>,
    /// Requests for which containers of a pod were stopped.
    of_pods: BTreeMap<String, BTreeSet<String>>,
}

/// A container that is stopped, as its request says.
struct Stop<'m> {
    request: &'m Object,
    name: &'m str,
}

impl Stops {
    /// Judges a call of a runtime.
    pub fn judge(&mut self, call: &RuntimeCall<'_>, mirror: &Mirror) -> Option<Violation> {
        let Call::StopContainer { container, .. } = call.call else {
            return None;
        };
        let Some(stop) = stored(container, mirror) else {
            return call.breaks("what is stopped was stored before", "no request says so".into());
        };
        let (request, name) = (stop.request, stop.name);
        let pod = request.label(POD_UID);
        let key = (request.uid.to_string(), name.to_owned());
        let before = self.stopped.entry(key).or_insert_with(|| container.clone());
        never!(call, "a container is stopped once for a request",
            before != container => "for {} {before} was stopped as {name}", request.name);
        let of_pod = self.of_pods.entry(pod.to_owned()).or_default();
        of_pod.insert(request.uid.to_string());
        never!(call, "one request of a pod after the other",
            some other in of_pod.iter().find_map(|uid| running(uid, request, mirror))
                => "{} has begun, and {} is not over", request.name, other.name);
        if is_over(request) {
            return None;
        }
        never!(call, "a container is stopped after the grace period",
            some what in too_early(request, call.now) => "{what}");
        let pod = pod_of(request, mirror).filter(|pod| has_gate(pod) && is_there(request, mirror));
        let is_in_service = pod.is_some_and(|pod| !has_key(pod, &request.name));
        never!(call, "a container is stopped out of service",
            has_grace(request) && is_in_service => "{}", request.name);
        never!(call, "one container after the other", some what in unordered(request, name) => "{what}");
        None
    }
}

/// The request that has stored last that this container is being stopped.
fn stored<'m>(container: &str, mirror: &'m Mirror) -> Option<Stop<'m>> {
    let end = format!("://{container}");
    let named = |object: &'m Object| states(object).find(|state| text(&state["message"]).ends_with(&end));
    let newest = |versions: &'m Vec<std::sync::Arc<Object>>| {
        let mut newest_first = versions.iter().rev();
        let (version, name) =
            newest_first.find_map(|one| Some((one.version, named(one)?["name"].as_str()?)))?;
        let request = versions.last()?;
        Some((version, Stop { request, name }))
    };
    let all = mirror.of(REQUESTS).objects.values().filter_map(newest);
    all.max_by_key(|(version, _)| *version).map(|(_, stop)| stop)
}

fn is_over(request: &Object) -> bool {
    request.gone || request.is_going() || has_ended(request)
}

/// Another request, if it is not over.
fn running<'m>(uid: &str, than: &Object, mirror: &'m Mirror) -> Option<&'m Object> {
    let other = mirror.of(REQUESTS).objects.get(uid)?.last()?;
    (other.uid != than.uid && !is_over(other)).then_some(&**other)
}

fn has_grace(request: &Object) -> bool {
    !request.value()["spec"]["strategy"]["unreadyGracePeriodSeconds"].is_null()
}

/// Why it is too early to stop something, if it is.
fn too_early(request: &Object, now: Timestamp) -> Option<String> {
    let seconds = request.value()["spec"]["strategy"]["unreadyGracePeriodSeconds"].as_i64()?;
    let since: Option<Timestamp> = grace(request).parse().ok();
    let due = since.and_then(|since| since.checked_add(SignedDuration::from_secs(seconds)).ok());
    match due {
        Some(due) if due <= now => None,
        _ => Some(format!("{} waits until {due:?}, and it is {now}", request.name)),
    }
}

/// What another container is still to go through before this one is stopped.
fn unordered(request: &Object, name: &str) -> Option<String> {
    let spec = &request.value()["spec"];
    let state_of = |one: &Value| states(request).find(|state| state["name"] == one["name"]);
    let is_ordered = spec["strategy"]["orderedRecreate"] == true;
    let is_dealt_with = |one: &Value| {
        state_of(one).is_some_and(|state| {
            let is_untouched =
                state["phase"] == "Pending" && state["message"].as_str().is_none_or(str::is_empty);
            is_final(state) || (!is_ordered && !is_untouched)
        })
    };
    let containers = spec["containers"].as_array()?;
    let mut before = containers.iter().take_while(|one| one["name"] != *name);
    if let Some(open) = before.find(|one| !is_dealt_with(one)) {
        return Some(format!("{name} before {} of {}", open["name"], request.name));
    }
    let is_being_stopped = |one: &&Value| {
        let state = state_of(one).filter(|state| !is_final(state) && state["isKilled"] != true);
        let message = state.and_then(|state| state["message"].as_str());
        message.is_some_and(|message| message.starts_with("Stopping container "))
    };
    let mut others = containers.iter().filter(|one| one["name"] != *name);
    let other = others.find(is_being_stopped)?;
    Some(format!(
        "{name} while {} of {} is being stopped",
        other["name"], request.name
    ))
}

/// Is a container dealt with?
pub fn is_final(state: &Value) -> bool {
    state["phase"] == "Succeeded" || state["phase"] == "Failed"
}
