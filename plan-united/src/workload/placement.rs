//! The nodes of the pods of a subset.

use kruise_api::uniteddeployment::Subset;
use kruise_plan_kit::put;
use serde_json::{Value, json};

const TERMS: [&str; 5] = [
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
];

/// Adds the requirements and tolerations of a subset to a pod template.
pub(super) fn apply(pods: &mut Value, subset: &Subset) {
    let requirements = subset
        .node_selector_term
        .get("matchExpressions")
        .and_then(Value::as_array);
    if let Some(requirements) = requirements.filter(|requirements| !requirements.is_empty()) {
        let terms = TERMS.iter().try_fold(&*pods, |value, key| value.get(*key));
        let mut terms = terms.and_then(Value::as_array).cloned().unwrap_or_default();
        if terms.is_empty() {
            terms.push(json!({}));
        }
        for term in &mut terms {
            let own = term.get("matchExpressions").and_then(Value::as_array);
            let all = own.into_iter().flatten().chain(requirements);
            let all: Value = all.cloned().collect();
            put(term, &["matchExpressions"], all);
        }
        put(pods, &TERMS, terms.into());
    }
    if !subset.tolerations.is_empty() {
        let own = pods.pointer("/spec/tolerations").and_then(Value::as_array);
        let all: Value = own
            .into_iter()
            .flatten()
            .chain(&subset.tolerations)
            .cloned()
            .collect();
        put(pods, &["spec", "tolerations"], all);
    }
}
