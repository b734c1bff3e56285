//! *"A request ends for a reason, once. A grace period begins once, with the pod out of service. Of a pod only the
//! condition is written that takes it out of service; it stays so while its request runs, and nothing is left on
//! it."*

use super::super::start::REQUESTS;
use super::facts::{end, grace, has_key, is_held, keys, pod_of, serving};
use crate::rules::prelude::*;

/// Most writes of a request beside its status: one that holds it back, one that releases it.
const MOST: u32 = 2;

/// How often each request, by its uid, was written beside its status.
#[derive(Default)]
pub struct Written(BTreeMap<Arc<str>, u32>);

impl Written {
    /// Is a request written no more often than it needs?
    pub fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let [_, after] = write.both(mirror, REQUESTS).filter(|_| write.changes(REQUESTS))?;
        let count = self.0.entry(after.uid.clone()).or_default();
        *count += 1;
        never!(write, "a request is written as often as it needs", *count > MOST => "the {count}. time");
        None
    }
}

/// Judges writes of pods.
pub fn judge_pod(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" {
        return None;
    }
    never!(write, "requests write conditions of pods only",
        !write.reports(PODS) || !pairs(&write.body["status"]).map(|(name, _)| name).eq(["conditions"]) => "{}", write.body);
    let [before, after] = write.pod(mirror)?;
    let (had, has) = (keys(before), keys(after));
    let request = |key: &String| {
        let name = key.strip_prefix("default/")?;
        let mut newest = mirror
            .of(REQUESTS)
            .objects
            .values()
            .filter_map(|versions| versions.last());
        newest.find(|last| *last.name == *name)
    };
    for key in had.iter().filter(|key| !has.contains(key)) {
        let running = request(key).filter(|one| !one.is_going() && !one.is_completed());
        never!(write, "a pod is out of service while its request runs", running.is_some() => "{key}");
    }
    for key in has.iter().filter(|key| !had.contains(key)) {
        let held = request(key).filter(|one| is_held(one));
        never!(write, "a request with a key is held back", held.is_none() => "{key}");
    }
    None
}

/// Judges writes of requests.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if let Some(request) = write.deleted(mirror, REQUESTS) {
        let due = after(
            &request.status()["completionTime"],
            &request.spec()["ttlSecondsAfterFinished"],
        );
        never!(write, "a request is deleted when its time to live is over",
            due.is_none_or(|due| write.sender_now() < due) => "it may go at {due:?}");
        return None;
    }
    let [before, new] = write
        .both(mirror, REQUESTS)
        .filter(|_| write.resource == REQUESTS.plural)?;
    never!(write, "an end is final", before.is_completed() && end(before) != end(new) => "{:?}", end(new));
    never!(write, "a request ends for a reason",
        !before.is_completed() && new.is_completed() && !has_reason(write, mirror, before, new) => "{}", new.status());
    if grace(before) != grace(new) {
        never!(write, "a grace period begins once",
            !grace(before).is_empty() => "{} was {}", grace(new), grace(before));
        never!(write, "a grace period begins out of service",
            some pod in serving(new, mirror) => "{} serves", pod.name);
    }
    if is_held(before) && !is_held(new) {
        let left = pod_of(new, mirror).filter(|pod| !pod.gone && has_key(pod, new));
        never!(write, "a pod is back in service before its request is released", some pod in left => "{}", pod.name);
        never!(write, "a request holds its pod until it ends",
            !before.is_completed() && !before.is_going() => "it runs");
    }
    never!(write, "the agent learns what the pod reports", some what in unreported(before, new) => "{what}");
    None
}

/// May a request have ended with this message?
fn has_reason(write: &Write<'_>, mirror: &Mirror, before: &Object, new: &Object) -> bool {
    let created = &before.metadata()["creationTimestamp"];
    let is_past = |seconds: &Value| after(created, seconds).is_some_and(|due| write.sender_now() >= due);
    match text(&new.status()["message"]) {
        "pod has gone" => pod_of(before, mirror).is_none_or(|pod| pod.is_going()),
        "daemon has not responded for a long time" => {
            is_past(&json!(60)) && text(&before.status()["phase"]).is_empty()
        }
        "recreating has exceeded the activeDeadlineSeconds" => {
            is_past(&before.spec()["activeDeadlineSeconds"])
        }
        _ => false,
    }
}

/// An entry for the agent that is none of the requested containers, or none at all.
fn unreported(before: &Object, new: &Object) -> Option<String> {
    let [old, all] = [before, new].map(|request| &request.status()["containerStatusSnapshot"]);
    if old == all {
        return None;
    }
    if list(all).is_empty() {
        return Some(format!("{all}, and it was {old}"));
    }
    let is_known = |name: &Value| named(&new.spec()["containers"], name).is_some() && !name.is_null();
    let mut names = items(all).map(|entry| &entry["name"]);
    let unknown = names.find(|name| !is_known(name))?;
    Some(format!("{unknown} is not requested"))
}
