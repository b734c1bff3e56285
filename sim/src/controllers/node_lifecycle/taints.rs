//! Taints that follow from a node's conditions and from whether it is cordoned.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::{at, seconds};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// Conditions that something is wrong with a node, and their taints.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// The taints of a node.
pub(super) fn of(node: &Value) -> Vec<Value> {
    let taints = at(node, "/spec/taints").and_then(Value::as_array);
    taints.cloned().unwrap_or_default()
}

/// The status of its condition `Ready`, if it has one.
pub(super) fn ready(node: &Value) -> Option<&str> {
    condition(node, "Ready")
}

fn condition<'a>(node: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = at(node, "/status/conditions").and_then(Value::as_array)?;
    let mut found = conditions
        .iter()
        .filter(|one| one.get("type") == Some(&kind.into()));
    found.next()?.get("status")?.as_str()
}

/// All taints that a node should have, if it has others. Those of users stay.
pub(super) fn changed(node: &Value, now: Timestamp) -> Option<Vec<Value>> {
    let before = of(node);
    let wanted = wanted(node);
    let is = |taint: &Value, (key, effect): &(&str, &str)| {
        taint.get("key") == Some(&(*key).into()) && taint.get("effect") == Some(&(*effect).into())
    };
    let mut after: Vec<Value> = before
        .iter()
        .filter(|taint| {
            let of_ours = wanted.iter().find(|(which, _)| is(taint, which));
            of_ours.is_none_or(|(_, holds)| *holds)
        })
        .cloned()
        .collect();
    for (which, _) in wanted.iter().filter(|(_, holds)| *holds) {
        if !before.iter().any(|taint| is(taint, which)) {
            after.push(json!({"key": which.0, "effect": which.1, "timeAdded": seconds(now)}));
        }
    }
    (after != before).then_some(after)
}

/// Keys and effects of taints that are the controller's, and whether a node should have them. A node that never
/// reported whether it is ready keeps the taint that it was created with.
fn wanted(node: &Value) -> Vec<((&'static str, &'static str), bool)> {
    let mut wanted = Vec::new();
    if let Some(ready) = ready(node) {
        for effect in ["NoSchedule", "NoExecute"] {
            wanted.push(((NOT_READY, effect), ready == "False"));
            wanted.push(((UNREACHABLE, effect), ready == "Unknown"));
        }
    }
    for (kind, key) in PRESSURES {
        wanted.push(((key, "NoSchedule"), condition(node, kind) == Some("True")));
    }
    let cordoned = at(node, "/spec/unschedulable") == Some(&Value::Bool(true));
    wanted.push(((CORDONED, "NoSchedule"), cordoned));
    wanted
}
