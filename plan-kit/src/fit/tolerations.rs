//! Tolerations of a pod.

use serde_json::{Value, json};

use super::UNSCHEDULABLE;

/// One toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Toleration {
    /// Empty for every key.
    key: Box<str>,
    /// `None` for every value.
    value: Option<Box<str>>,
    /// Empty for every effect.
    effect: Box<str>,
    /// Is it one that Kubernetes can read?
    readable: bool,
}

impl Toleration {
    pub(super) fn of(toleration: &Value) -> Self {
        let text = |member: &str| member_of(toleration, member);
        let exists = text("operator") == "Exists";
        Self {
            key: text("key").into(),
            value: (!exists).then(|| text("value").into()),
            effect: text("effect").into(),
            readable: exists || matches!(text("operator"), "" | "Equal"),
        }
    }

    pub(super) fn tolerates(&self, key: &str, value: &str, effect: &str) -> bool {
        self.readable
            && (self.effect.is_empty() || *self.effect == *effect)
            && (self.key.is_empty() || *self.key == *key)
            && self.value.as_ref().is_none_or(|have| **have == *value)
    }
}

/// The tolerations of a daemon pod of this template: its own, and those that keep a daemon on a node that is in
/// trouble or cordoned. One that is there already is replaced.
pub fn for_daemons(template: &Value) -> Vec<Value> {
    let own = template.pointer("/spec/tolerations").and_then(Value::as_array);
    let mut all = own.cloned().unwrap_or_default();
    let on_host = template.pointer("/spec/hostNetwork") == Some(&Value::Bool(true));
    let daemons = [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        (UNSCHEDULABLE, "NoSchedule"),
    ];
    let network = ("node.kubernetes.io/network-unavailable", "NoSchedule");
    for (key, effect) in daemons.into_iter().chain(on_host.then_some(network)) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        match all.iter_mut().find(|have| is_alike(have, &toleration)) {
            Some(have) => *have = toleration,
            None => all.push(toleration),
        }
    }
    all
}

/// Do they tolerate the same, for however long?
fn is_alike(one: &Value, other: &Value) -> bool {
    let mut members = ["key", "operator", "value", "effect"].into_iter();
    members.all(|member| member_of(one, member) == member_of(other, member))
}

fn member_of<'v>(toleration: &'v Value, member: &str) -> &'v str {
    toleration.get(member).and_then(Value::as_str).unwrap_or_default()
}
