//! *"A pod of the template may run on a node whose labels it selects and whose taints it tolerates."*

use crate::rules::prelude::*;

/// Keys and effects of taints that all pods of a kind tolerate, whatever their template says.
pub type Tolerated = &'static [(&'static str, &'static str)];

/// The taint of a cordoned node.
const CORDON: &str = "node.kubernetes.io/unschedulable";

/// May a pod of the template be created on the node?
pub fn runs(template: &Value, node: &Object, always: Tolerated) -> bool {
    let cordon = serde_json::json!({"key": CORDON, "effect": "NoSchedule"});
    let is_cordoned = node.spec()["unschedulable"] == true && !tolerates(template, &cordon, always);
    continues(template, node, always)
        && !has_untolerated(template, node, "NoSchedule", always)
        && !is_cordoned
}

/// May one that is there stay?
pub fn continues(template: &Value, node: &Object, always: Tolerated) -> bool {
    let selector = template["spec"]["nodeSelector"].as_object();
    let mut selector = selector.into_iter().flatten();
    selector.all(|(key, value)| node.label(key) == value)
        && !has_untolerated(template, node, "NoExecute", always)
}

fn has_untolerated(template: &Value, node: &Object, effect: &str, always: Tolerated) -> bool {
    let mut taints = items(&node.spec()["taints"]).filter(|taint| taint["effect"] == effect);
    taints.any(|taint| !tolerates(template, taint, always))
}

fn tolerates(template: &Value, taint: &Value, always: Tolerated) -> bool {
    let text = |of: &Value, name: &str| text(&of[name]).to_owned();
    let (key, effect) = (text(taint, "key"), text(taint, "effect"));
    let always = always.contains(&(key.as_str(), effect.as_str()));
    let mut tolerations = items(&template["spec"]["tolerations"]);
    always
        || tolerations.any(|one| {
            // Scenarios have no others than such with a key.
            let exists = one["operator"] == "Exists" || text(one, "value") == text(taint, "value");
            text(one, "key") == key
                && exists
                && matches!(text(one, "effect"), own if own.is_empty() || own == effect)
        })
}
