//! *"A pod of the template may run on a node whose labels it selects and whose taints it tolerates."*

use serde_json::Value;

use crate::engine::oracles::Object;

/// What every pod of a DaemonSet tolerates: key and effect.
pub const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// May a pod of the template be created on the node?
pub fn runs(template: &Value, node: &Object) -> bool {
    continues(template, node) && !has_untolerated(template, node, "NoSchedule")
}

/// May one that is there stay?
pub fn continues(template: &Value, node: &Object) -> bool {
    let selector = template["spec"]["nodeSelector"].as_object();
    let mut selector = selector.into_iter().flatten();
    selector.all(|(key, value)| node.label(key) == value) && !has_untolerated(template, node, "NoExecute")
}

fn has_untolerated(template: &Value, node: &Object, effect: &str) -> bool {
    let taints = node.value()["spec"]["taints"].as_array();
    let mut taints = taints
        .into_iter()
        .flatten()
        .filter(|taint| taint["effect"] == effect);
    taints.any(|taint| !tolerates(template, taint))
}

fn tolerates(template: &Value, taint: &Value) -> bool {
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let (key, effect) = (text(taint, "key"), text(taint, "effect"));
    let always = TOLERATED.contains(&(key.as_str(), effect.as_str()));
    let tolerations = template["spec"]["tolerations"].as_array();
    let mut tolerations = tolerations.into_iter().flatten();
    always
        || tolerations.any(|one| {
            // Scenarios have no others than such with a key.
            let exists = one["operator"] == "Exists" || text(one, "value") == text(taint, "value");
            text(one, "key") == key
                && exists
                && matches!(text(one, "effect"), own if own.is_empty() || own == effect)
        })
}
