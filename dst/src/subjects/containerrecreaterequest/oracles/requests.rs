//! *"A request ends for a reason, once. A grace period begins once, with the pod out of service. Nothing is left on the pod."*

use kruise_sim::Method;
use serde_json::{Value, json};

use super::known::{after, change, grace, has_ended, has_gate, has_key, is_held, is_there, pod_of};
use crate::engine::oracles::{Mirror, Object, Violation, Write};
use crate::subjects::containerrecreaterequest::start::REQUESTS;

/// Judges writes of requests.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != REQUESTS.plural {
        return None;
    }
    let violation = |oracle, what: String| {
        let what = format!("{} wrote {}: {what}", write.process, write.name);
        Some(Violation { oracle, what })
    };
    if write.method == Method::Delete {
        let early = deleted_early(write, mirror)?;
        return violation("a request is deleted when its time to live is over", early);
    }
    let [before, new] = change(write, mirror)?;
    let end = |request: &Object| {
        let status = &request.value()["status"];
        [
            status["phase"].clone(),
            status["completionTime"].clone(),
            status["message"].clone(),
        ]
    };
    if has_ended(before) && end(before) != end(new) {
        return violation("an end is final", format!("{:?}", end(new)));
    }
    if !has_ended(before)
        && has_ended(new)
        && let Some(what) = ended_without_a_reason(write, mirror, before, new)
    {
        return violation("a request ends for a reason", what);
    }
    if grace(before) != grace(new) {
        if !grace(before).is_empty() {
            return violation(
                "a grace period begins once",
                format!("{} was {}", grace(new), grace(before)),
            );
        }
        let serving = pod_of(new, mirror)
            .filter(|pod| !pod.gone && !pod.is_going() && has_gate(pod) && !has_key(pod, &new.name));
        if let Some(pod) = serving {
            return violation(
                "a grace period begins out of service",
                format!("{} serves", pod.name),
            );
        }
    }
    if is_held(before) && !is_held(new) {
        let left = pod_of(new, mirror).filter(|pod| !pod.gone && has_key(pod, &new.name));
        if let Some(pod) = left {
            return violation(
                "a pod is back in service before its request is released",
                pod.name.to_string(),
            );
        }
        if !has_ended(before) && !before.is_going() {
            return violation("a request holds its pod until it ends", "it runs".into());
        }
    }
    unreported(before, new).and_then(|what| violation("the agent learns what the pod reports", what))
}

/// Why a deletion was too early.
fn deleted_early(write: &Write<'_>, mirror: &Mirror) -> Option<String> {
    let versions = mirror.of(REQUESTS).changed_at(write.marks.of(REQUESTS))?;
    let request = versions.iter().rev().find(|one| !one.gone && !one.is_going())?;
    let value = request.value();
    let due = after(
        &value["status"]["completionTime"],
        &value["spec"]["ttlSecondsAfterFinished"],
    );
    match due {
        Some(due) if write.sender_now() >= due => None,
        _ => Some(format!("it may go at {due:?}")),
    }
}

/// Why a request should not have ended.
fn ended_without_a_reason(
    write: &Write<'_>,
    mirror: &Mirror,
    before: &Object,
    new: &Object,
) -> Option<String> {
    let value = before.value();
    let created = &value["metadata"]["creationTimestamp"];
    let is_past = |seconds: &Value| after(created, seconds).is_some_and(|due| write.sender_now() >= due);
    let holds = match new.value()["status"]["message"].as_str().unwrap_or_default() {
        "pod has gone" => !is_there(before, mirror),
        "daemon has not responded for a long time" => {
            is_past(&json!(60)) && value["status"]["phase"].as_str().unwrap_or_default().is_empty()
        }
        "recreating has exceeded the activeDeadlineSeconds" => {
            is_past(&value["spec"]["activeDeadlineSeconds"])
        }
        _ => false,
    };
    (!holds).then(|| format!("{}", new.value()["status"]))
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
