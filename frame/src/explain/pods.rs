//! What pods themselves report: why they are not in service, and which hooks hold them.
//!
//! The words of the kubelet and of the scheduler are in the pod's status; those about failing probes and mounts are in
//! events only.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use kruise_api::{
    lifecycle::{Lifecycle, LifecycleHook},
    names::{LIFECYCLE_STATE, LIFECYCLE_TIMESTAMP},
};
use serde_json::Value;

use super::events::Warnings;

/// Pods of which the facts are shown; others are counted.
const MOST: usize = 20;

/// The facts about some pods, by the name that the plan uses: `NAME`, or `NAMESPACE/NAME`.
#[derive(Default)]
pub struct Facts(BTreeMap<String, String>);

impl Facts {
    /// Collects the facts about pods that are not in service, held or being deleted.
    pub fn of<'p>(
        pods: impl Iterator<Item = (String, &'p Value)>,
        lifecycle: Option<&Lifecycle>,
        warnings: &Warnings,
        now: Timestamp,
    ) -> Self {
        let facts = pods.filter_map(|(name, pod)| {
            let mut facts = facts(pod, lifecycle, now);
            if needs_help(pod) {
                let known = facts.join("; ");
                facts.extend(
                    warnings
                        .of_pod(pod)
                        .filter(|warning| !known.contains(warning.message()))
                        .map(ToString::to_string),
                );
            }
            (!facts.is_empty()).then(|| (name, facts.join("; ")))
        });
        Self(facts.collect())
    }

    /// The section of an explanation; empty if there is nothing to report.
    pub fn section(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        let wanted: Vec<_> = self.0.iter().filter(|(name, _)| is_wanted(name)).collect();
        let mut text = String::new();
        if wanted.is_empty() {
            return text;
        }
        text.push('\n');
        text.push_str(HEAD);
        for (name, facts) in wanted.iter().take(MOST) {
            let _ = writeln!(text, "  pods/{name}: {facts}");
        }
        let more = wanted.len().saturating_sub(MOST);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more pods; name one to see what it reports");
        }
        text
    }
}

/// Heading of the section.
const HEAD: &str = "Not in service, or held:\n";

/// An explanation without the section in which pods report, because that quotes the programs that run in them.
pub fn without_reports(explanation: &str) -> String {
    let Some((before, after)) = explanation.split_once(HEAD) else {
        return explanation.to_owned();
    };
    let rest: Vec<&str> = after
        .split_inclusive('\n')
        .skip_while(|line| line.starts_with("  "))
        .collect();
    format!("{before}{HEAD}  see the pods\n{}", rest.concat())
}

/// Is it so far from being in service that warnings of its events matter?
pub fn needs_help(pod: &Value) -> bool {
    condition(pod, "Ready").is_none_or(|ready| text(ready, "status") != "True")
}

/// What a pod reports, the most telling first.
fn facts(pod: &Value, lifecycle: Option<&Lifecycle>, now: Timestamp) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(leaving(pod, now));
    facts.extend(held(pod, lifecycle, now));
    if facts.is_empty() || needs_help(pod) {
        facts.extend(out_of_service(pod));
    }
    facts
}

/// It is being deleted.
fn leaving(pod: &Value, now: Timestamp) -> Option<String> {
    let gone_by = time(pod.pointer("/metadata/deletionTimestamp")?)?;
    let finalizers = names(pod.pointer("/metadata/finalizers"));
    let late = now.duration_since(gone_by).as_secs();
    Some(match (finalizers.is_empty(), late > 0) {
        (false, _) => format!(
            "is being deleted: waits for its finalizers {}",
            finalizers.join(", ")
        ),
        (true, true) => format!(
            "is being deleted, {late} s longer than its grace period: its node has not confirmed its end"
        ),
        (true, false) => "is being deleted: its grace period runs".to_owned(),
    })
}

/// A lifecycle hook holds it.
fn held(pod: &Value, lifecycle: Option<&Lifecycle>, now: Timestamp) -> Option<String> {
    let lifecycle = lifecycle?;
    let entry = |map: &str, key: &str| pod.pointer("/metadata")?.get(map)?.get(key)?.as_str();
    let (name, hook, holds_while) = match entry("labels", LIFECYCLE_STATE)? {
        "PreparingDelete" => ("preDelete", lifecycle.pre_delete.as_ref()?, Has::One),
        "PreparingUpdate" => ("inPlaceUpdate", lifecycle.in_place_update.as_ref()?, Has::One),
        "Updated" => ("inPlaceUpdate", lifecycle.in_place_update.as_ref()?, Has::NotAll),
        "PreparingNormal" => ("preNormal", lifecycle.pre_normal.as_ref()?, Has::NotAll),
        _ => return None,
    };
    let handlers = handlers(hook, pod, holds_while == Has::One);
    if handlers.is_empty() {
        return None;
    }
    let since = entry("annotations", LIFECYCLE_TIMESTAMP).and_then(|text| text.parse::<Timestamp>().ok());
    let since = since.map_or_else(String::new, |since| {
        format!(
            " since {} ({})",
            since.strftime("%Y-%m-%dT%H:%M:%SZ"),
            span(now, since)
        )
    });
    let what = match holds_while {
        Has::One => "removes",
        Has::NotAll => "adds",
    };
    Some(format!(
        "its {name} hook holds it{since}, until somebody {what} {}",
        handlers.join(" and ")
    ))
}

/// When a hook holds a pod.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// While it has one of the handlers.
    One,
    /// Until it has all.
    NotAll,
}

/// The labels and finalizers of a hook that are on the pod, or those that are not.
fn handlers(hook: &LifecycleHook, pod: &Value, present: bool) -> Vec<String> {
    let labels = pod.pointer("/metadata/labels").unwrap_or(&Value::Null);
    let finalizers = names(pod.pointer("/metadata/finalizers"));
    let on_labels = hook.labels_handler.iter().filter(|(key, value)| {
        let is_on = labels.get(key.as_str()).and_then(Value::as_str) == Some(value.as_str());
        is_on == present
    });
    let on_finalizers = hook
        .finalizers_handler
        .iter()
        .filter(|name| finalizers.contains(&name.as_str()) == present);
    let labels = on_labels.map(|(key, value)| format!("label {key}={value}"));
    labels
        .chain(on_finalizers.map(|name| format!("finalizer {name}")))
        .collect()
}

/// Why it is not in service, as the scheduler and the kubelet have it.
fn out_of_service(pod: &Value) -> Vec<String> {
    if !needs_help(pod) {
        return Vec::new();
    }
    let status = pod.get("status").unwrap_or(&Value::Null);
    let phase = text(status, "phase");
    if matches!(phase, "Failed" | "Succeeded") && !text(status, "reason").is_empty() {
        return vec![format!("has ended, {phase}: {}", reason(status))];
    }
    if let Some(why) = unscheduled(pod) {
        return vec![why];
    }
    let mut facts = Vec::new();
    for (list, kind) in [
        ("initContainerStatuses", "init container"),
        ("containerStatuses", "container"),
    ] {
        let statuses = status.get(list).and_then(Value::as_array).into_iter().flatten();
        facts.extend(statuses.filter_map(|status| container(status, kind)));
    }
    // They wait for the init containers, of which something is reported.
    if facts.iter().any(|fact| fact.starts_with("init container")) {
        facts.retain(|fact| !fact.ends_with("waits: PodInitializing"));
    }
    facts.extend(resize(pod));
    if facts.is_empty() {
        facts.extend(gates(pod));
    }
    if facts.is_empty() {
        let ready = condition(pod, "Ready").filter(|ready| text(ready, "status") != "True");
        facts.push(match ready.map(reason).filter(|reason| !reason.is_empty()) {
            Some(reason) => format!("is not ready: {reason}"),
            None if text(pod.pointer("/spec").unwrap_or(&Value::Null), "nodeName").is_empty() => {
                "has no node yet".to_owned()
            }
            None => "its kubelet has not reported anything yet".to_owned(),
        });
    }
    facts
}

/// It has no node.
fn unscheduled(pod: &Value) -> Option<String> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    if !text(spec, "nodeName").is_empty() {
        return None;
    }
    let scheduled = condition(pod, "PodScheduled").filter(|scheduled| text(scheduled, "status") != "True");
    if let Some(reason) = scheduled.map(reason).filter(|reason| !reason.is_empty()) {
        return Some(format!("is not scheduled: {reason}"));
    }
    let scheduler = Some(text(spec, "schedulerName")).filter(|name| !name.is_empty());
    let scheduler = scheduler.unwrap_or("default-scheduler");
    Some(format!(
        "is not scheduled: the scheduler {scheduler} has not reported anything"
    ))
}

/// What a container waits for, or how it ended.
fn container(status: &Value, kind: &str) -> Option<String> {
    let name = text(status, "name");
    let state = status.get("state").unwrap_or(&Value::Null);
    let is_init = kind != "container";
    if let Some(waiting) = state.get("waiting").filter(|waiting| waiting.is_object()) {
        return Some(format!(
            "{kind} {name} waits: {}{}",
            reason(waiting),
            last(status)
        ));
    }
    if let Some(ended) = state.get("terminated").filter(|ended| ended.is_object()) {
        let succeeded = ended.get("exitCode").and_then(Value::as_i64) == Some(0);
        return (!(is_init && succeeded)).then(|| format!("{kind} {name} has ended: {}", exit(ended)));
    }
    let runs = state.get("running").is_some_and(Value::is_object);
    let is = |member: &str| status.get(member).and_then(Value::as_bool);
    if !runs || is("ready") == Some(true) {
        return None;
    }
    let why = match (is_init, is("started")) {
        (true, Some(true)) => return None,
        (true, _) => "runs, and has not ended or started yet",
        (false, Some(false)) => "runs, and its startup probe has not succeeded",
        (false, _) => "runs, and is not ready",
    };
    Some(format!("{kind} {name} {why}{}", last(status)))
}

/// How a container ended the last time.
fn last(status: &Value) -> String {
    let Some(ended) = status
        .pointer("/lastState/terminated")
        .filter(|ended| ended.is_object())
    else {
        return String::new();
    };
    let restarts = status
        .get("restartCount")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    format!(" (restarts: {restarts}; it ended last with {})", exit(ended))
}

fn exit(ended: &Value) -> String {
    let code = ended.get("exitCode").and_then(Value::as_i64);
    let code = code.map_or_else(String::new, |code| format!(" (exit code {code})"));
    let (why, message) = (text(ended, "reason"), text(ended, "message"));
    let why = if why.is_empty() { "no reason" } else { why };
    let message = one_line(message);
    let colon = if message.is_empty() { "" } else { ": " };
    format!("{why}{code}{colon}{message}")
}

/// Its node does not give it the resources that it asks for.
fn resize(pod: &Value) -> Option<String> {
    let pending = condition(pod, "PodResizePending").filter(|pending| text(pending, "status") == "True")?;
    Some(format!("its resize waits: {}", reason(pending)))
}

/// Readiness gates that are not True.
fn gates(pod: &Value) -> Vec<String> {
    let gates = pod.pointer("/spec/readinessGates").and_then(Value::as_array);
    let types = gates
        .into_iter()
        .flatten()
        .map(|gate| text(gate, "conditionType"));
    let closed = types.filter_map(|kind| match condition(pod, kind) {
        None => Some(format!("its readiness gate {kind} has no condition yet")),
        Some(found) if text(found, "status") != "True" => {
            let reason = reason(found);
            let colon = if reason.is_empty() { "" } else { ": " };
            Some(format!(
                "its readiness gate {kind} is {}{colon}{reason}",
                text(found, "status")
            ))
        }
        Some(_) => None,
    });
    closed.collect()
}

/// Reason and message of a condition or state.
fn reason(object: &Value) -> String {
    let (reason, message) = (text(object, "reason"), one_line(text(object, "message")));
    match (reason.is_empty(), message.is_empty()) {
        (false, false) => format!("{reason}: {message}"),
        (false, true) => reason.to_owned(),
        (true, _) => message,
    }
}

/// A message without line breaks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let all = pod.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().find(|one| text(one, "type") == kind)
}

/// A member that is a text; empty if there is none.
pub fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn names(list: Option<&Value>) -> Vec<&str> {
    let list = list.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// How long ago, in its largest unit.
fn span(now: Timestamp, since: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86400),
    }
}

#[cfg(test)]
mod tests;
