//! What a subset adds to a pod.

use kruise_api::names::workloadspread::MATCHED;
use kruise_api::workloadspread::{Matched, Subset};
use kruise_plan_kit::injected::is_injected;
use serde_json::{Map, Value, json};

use super::super::affinity;
use super::super::draft::{annotate, list};
use crate::json::{items, present};
use crate::patched::patched;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Adds the tolerations, the node affinity and the patch of a subset, and names it.
///
/// # Errors
/// In plain words, if the patch does not fit the pod.
pub(super) fn inject(pod: &mut Value, subset: &Subset, matched: &Matched) -> Result<(), String> {
    if let Some(spec) = pod.get_mut("spec") {
        if !subset.tolerations.is_empty()
            && let Some(tolerations) = list(spec, "tolerations")
        {
            tolerations.extend(subset.tolerations.iter().cloned());
        }
        if let Some(spec) = spec.as_object_mut() {
            if !subset.preferred_node_selector.is_empty() {
                affinity::prefer(spec, subset.preferred_node_selector.clone());
            }
            if let Some(term) = &subset.required_node_selector
                && !is_injected("SubsetTermForgotten")
            {
                require(spec, term);
            }
        }
    }
    if let Some(change) = &subset.patch {
        patch(pod, change)?;
    }
    let text = serde_json::to_string(matched).map_err(|error| error.to_string())?;
    annotate(pod, MATCHED, text);
    Ok(())
}

/// A node must fit this term as well as one of those that the pod has. A term that says nothing would fit no node.
fn require(spec: &mut Map<String, Value>, term: &Value) {
    let parts = ["matchExpressions", "matchFields"].map(|part| (part, items(term, part)));
    if parts.iter().all(|(_, wanted)| wanted.is_empty()) {
        return;
    }
    let Some(terms) = affinity::of_nodes(spec)
        .and_then(|affinity| affinity::object(affinity, REQUIRED))
        .and_then(|required| affinity::array(required, "nodeSelectorTerms"))
    else {
        return;
    };
    if terms.is_empty() {
        terms.push(json!({}));
    }
    for own in terms {
        for (part, wanted) in parts.iter().filter(|(_, wanted)| !wanted.is_empty()) {
            if let Some(own) = list(own, part) {
                own.extend(wanted.iter().cloned());
            }
        }
    }
}

/// Patches the pod as a server would. What the server has derived from the class of priority before is derived
/// again if that is another one now, unless the patch has it.
fn patch(pod: &mut Value, patch: &Value) -> Result<(), String> {
    let class = |pod: &Value| pod.pointer("/spec/priorityClassName").cloned();
    let before = class(pod);
    *pod = patched(pod.take(), patch)?;
    if class(pod) != before
        && let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut)
    {
        let wanted = patch.get("spec").unwrap_or(&Value::Null);
        spec.remove("priority");
        if present(wanted, "preemptionPolicy").is_none() {
            spec.remove("preemptionPolicy");
        }
    }
    Ok(())
}
