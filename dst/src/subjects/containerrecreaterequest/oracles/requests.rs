//! *"A request ends for a reason, once. A grace period begins once, with the pod out of service. Nothing is left on the pod."*

use super::super::start::REQUESTS;
use super::known::{end, grace, has_ended, has_gate, has_key, is_held, is_there, pod_of};
use crate::rules::prelude::*;

/// Judges writes of requests.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != REQUESTS.plural {
        return None;
    }
    if write.method == Method::Delete {
        let versions = mirror.of(REQUESTS).changed_at(write.marks.of(REQUESTS))?;
        let request = versions
            .iter()
            .rev()
            .find(|one| !one.gone && !one.is_going())?
            .value();
        let due = after(
            &request["status"]["completionTime"],
            &request["spec"]["ttlSecondsAfterFinished"],
        );
        never!(write, "a request is deleted when its time to live is over",
            due.is_none_or(|due| write.sender_now() < due) => "it may go at {due:?}");
        return None;
    }
    let [before, new] = write.both(mirror, REQUESTS)?;
    never!(write, "an end is final", has_ended(before) && end(before) != end(new) => "{:?}", end(new));
    never!(write, "a request ends for a reason",
        !has_ended(before) && has_ended(new) && !has_reason(write, mirror, before, new)
            => "{}", new.value()["status"]);
    if grace(before) != grace(new) {
        never!(write, "a grace period begins once",
            !grace(before).is_empty() => "{} was {}", grace(new), grace(before));
        let serving = pod_of(new, mirror)
            .filter(|pod| !pod.gone && !pod.is_going() && has_gate(pod) && !has_key(pod, &new.name));
        never!(write, "a grace period begins out of service", some pod in serving => "{} serves", pod.name);
    }
    if is_held(before) && !is_held(new) {
        let left = pod_of(new, mirror).filter(|pod| !pod.gone && has_key(pod, &new.name));
        never!(write, "a pod is back in service before its request is released",
            some pod in left => "{}", pod.name);
        never!(write, "a request holds its pod until it ends",
            !has_ended(before) && !before.is_going() => "it runs");
    }
    never!(write, "the agent learns what the pod reports", some what in unreported(before, new) => "{what}");
    None
}

/// May a request have ended with this message?
fn has_reason(write: &Write<'_>, mirror: &Mirror, before: &Object, new: &Object) -> bool {
    let value = before.value();
    let created = &value["metadata"]["creationTimestamp"];
    let is_past = |seconds: &Value| after(created, seconds).is_some_and(|due| write.sender_now() >= due);
    match text(&new.value()["status"]["message"]) {
        "pod has gone" => !is_there(before, mirror),
        "daemon has not responded for a long time" => {
            is_past(&json!(60)) && text(&value["status"]["phase"]).is_empty()
        }
        "recreating has exceeded the activeDeadlineSeconds" => {
            is_past(&value["spec"]["activeDeadlineSeconds"])
        }
        _ => false,
    }
}

/// An entry for the agent that is none of the requested containers, or none at all.
fn unreported(before: &Object, new: &Object) -> Option<String> {
    let entries = |request: &Object| request.value()["status"]["containerStatusSnapshot"].clone();
    let (old, all) = (entries(before), entries(new));
    if old == all {
        return None;
    }
    let requested = new.value()["spec"]["containers"].as_array()?;
    let Some(list) = all.as_array().filter(|list| !list.is_empty()) else {
        return Some(format!("{all}, and it was {old}"));
    };
    let mut names = list.iter().map(|entry| &entry["name"]);
    let is_known =
        |name: &Value| requested.iter().any(|container| container["name"] == *name) && !name.is_null();
    names
        .find(|name| !is_known(name))
        .map(|name| format!("{name} is not requested"))
}
