//! Taints and tolerations.

use crate::object::at;
use serde_json::{Value, json};

/// What a cordoned node is taken for.
pub(super) fn cordon() -> Value {
    json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
}

/// The first taint that keeps a pod away, as errors show it.
pub(super) fn untolerated(pod: &Value, taints: &[Value]) -> Option<String> {
    let hard = |taint: &&Value| matches!(text(taint, "effect"), "NoSchedule" | "NoExecute");
    let found = taints.iter().filter(hard).find(|taint| !tolerates(pod, taint))?;
    Some(format!("{{{}: {}}}", text(found, "key"), text(found, "value")))
}

pub(super) fn tolerates(pod: &Value, taint: &Value) -> bool {
    toleration(pod, taint).is_some()
}

/// The first toleration of a pod for a taint.
pub(crate) fn toleration<'a>(pod: &'a Value, taint: &Value) -> Option<&'a Value> {
    let list = at(pod, "/spec/tolerations").and_then(Value::as_array);
    list.into_iter().flatten().find(|toleration| {
        let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
        let same_value = match text(toleration, "operator") {
            "Exists" => true,
            "" | "Equal" => text(toleration, "value") == text(taint, "value"),
            _ => false,
        };
        (effect.is_empty() || effect == text(taint, "effect"))
            && (key.is_empty() || key == text(taint, "key"))
            && same_value
    })
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}
