//! *"A container is stopped once for a request: after that is stored, after its pod was out of service for as long
//! as is wanted, in its order, and one request of a pod after the other."*

use kruise_sim::runtime::Call;

use super::super::start::{POD_UID, REQUESTS};
use super::facts::{grace, is_final, serving, states};
use crate::rules::prelude::*;

/// What agents have stopped.
#[derive(Default)]
pub struct Stops {
    /// Ids of containers, by request and name of the container.
    stopped: BTreeMap<(Arc<str>, String), String>,
    /// Requests for which containers of a pod were stopped.
    of_pods: BTreeMap<String, BTreeSet<Arc<str>>>,
}

impl Stops {
    /// Judges a call of a runtime.
    pub fn judge(&mut self, call: &RuntimeCall<'_>, mirror: &Mirror) -> Option<Violation> {
        let Call::StopContainer { container, .. } = call.call else {
            return None;
        };
        let stored = stored(container, mirror);
        never!(call, "what is stopped was stored before", stored.is_none() => "no request says so");
        let (request, name) = stored?;
        let key = (request.uid.clone(), name.to_owned());
        let before = self.stopped.entry(key).or_insert_with(|| container.clone());
        never!(call, "a container is stopped once for a request",
            before != container => "for {} {before} was stopped as {name}", request.name);
        let of_pod = self.of_pods.entry(request.label(POD_UID).to_owned()).or_default();
        of_pod.insert(request.uid.clone());
        let others = of_pod.iter().filter_map(|uid| mirror.last(REQUESTS, uid));
        never!(call, "one request of a pod after the other",
            some other in others.into_iter().find(|other| other.uid != request.uid && !is_over(other))
                => "{} has begun, and {} is not over", request.name, other.name);
        if is_over(request) {
            return None;
        }
        never!(call, "a container is stopped after the grace period",
            some what in too_early(request, call.now) => "{what}");
        let has_grace = !request.spec()["strategy"]["unreadyGracePeriodSeconds"].is_null();
        never!(call, "a container is stopped out of service",
            some pod in serving(request, mirror).filter(|_| has_grace) => "{} serves", pod.name);
        never!(call, "one container after the other", some what in unordered(request, name) => "{what}");
        None
    }
}

/// The request that has stored last that this container is being stopped, and what it calls it.
fn stored<'m>(container: &str, mirror: &'m Mirror) -> Option<(&'m Object, &'m str)> {
    let end = format!("://{container}");
    let named = |object: &'m Object| states(object).find(|state| text(&state["message"]).ends_with(&end));
    let newest = |versions: &'m Vec<Arc<Object>>| {
        let mut newest_first = versions.iter().rev();
        let (version, name) =
            newest_first.find_map(|one| Some((one.version, named(one)?["name"].as_str()?)))?;
        Some((version, (&**versions.last()?, name)))
    };
    let all = mirror.of(REQUESTS).objects.values().filter_map(newest);
    all.max_by_key(|(version, _)| *version).map(|(_, stop)| stop)
}

fn is_over(request: &Object) -> bool {
    request.is_going() || request.is_completed()
}

/// Why it is too early to stop something, if it is.
fn too_early(request: &Object, now: Timestamp) -> Option<String> {
    let seconds = request.spec()["strategy"]["unreadyGracePeriodSeconds"].as_i64()?;
    let since: Option<Timestamp> = grace(request).parse().ok();
    let due = since.and_then(|since| since.checked_add(SignedDuration::from_secs(seconds)).ok());
    let is_due = due.is_some_and(|due| due <= now);
    (!is_due).then(|| format!("{} waits until {due:?}, and it is {now}", request.name))
}

/// What another container is still to go through before this one is stopped.
fn unordered(request: &Object, name: &str) -> Option<String> {
    let spec = request.spec();
    let state_of = |one: &Value| states(request).find(|state| state["name"] == one["name"]);
    let is_ordered = spec["strategy"]["orderedRecreate"] == true;
    let is_dealt_with = |one: &Value| {
        state_of(one).is_some_and(|state| {
            let is_untouched = state["phase"] == "Pending" && text(&state["message"]).is_empty();
            is_final(state) || (!is_ordered && !is_untouched)
        })
    };
    let containers = list(&spec["containers"]);
    let mut before = containers.iter().take_while(|one| one["name"] != *name);
    if let Some(open) = before.find(|one| !is_dealt_with(one)) {
        return Some(format!("{name} before {} of {}", open["name"], request.name));
    }
    let is_being_stopped = |one: &&Value| {
        let state = state_of(one).filter(|state| !is_final(state) && state["isKilled"] != true);
        state.is_some_and(|state| text(&state["message"]).starts_with("Stopping container "))
    };
    let mut others = containers.iter().filter(|one| one["name"] != *name);
    let other = others.find(is_being_stopped)?;
    Some(format!(
        "{name} while {} of {} is being stopped",
        other["name"], request.name
    ))
}
