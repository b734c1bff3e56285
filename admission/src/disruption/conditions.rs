//! Match conditions, in CEL, that keep requests away which no budget is asked about and no WorkloadSpread counts.
//!
//! A pod names its budget and its WorkloadSpread in annotations. So these conditions never change, and need no manager.

use kruise_api::names::podunavailablebudget::{RELATED, RELATED_LEGACY, UNAVAILABLE_PREFIX};
use kruise_api::names::workloadspread::MATCHED;
use serde_json::{Value, json};

/// Which requests a webhook is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// Deletions, updates and resizes of pods.
    OfPods,
    /// Evictions.
    Evictions,
}

/// The match conditions of a webhook.
pub(crate) fn conditions(requests: Requests) -> Value {
    let conditions = match requests {
        Requests::OfPods => vec![
            (
                "names-a-budget-or-spread",
                format!("{} || {}", is_a_counted_pod_deleted(), names_a_budget()),
            ),
            // Such a pod costs nothing, so that the last deletion by its node needs no manager.
            ("is-not-being-deleted", is_not_being_deleted()),
            ("becomes-unavailable", becomes_unavailable()),
        ],
        // The leader replaces `true` by a list of the namespaces that have a budget or a WorkloadSpread. It finds
        // the condition by its name, which therefore stays. If `false` were printed, applying the manifests again
        // would let evictions pass that a budget refuses, until the leader has written its list.
        Requests::Evictions => vec![("where-a-budget-is", "true".to_owned())],
    };
    let conditions = conditions
        .into_iter()
        .map(|(name, expression)| json!({"name": name, "expression": expression}));
    conditions.collect()
}

/// The pod before or after the change names a budget.
fn names_a_budget() -> String {
    let names = |pod: &str| {
        let by = |key: &str| {
            let annotations = format!("{pod}.metadata.annotations");
            format!("'{key}' in {annotations} && {annotations}['{key}'] != ''")
        };
        format!(
            "{pod} != null && has({pod}.metadata.annotations) && ({} || {})",
            by(RELATED),
            by(RELATED_LEGACY)
        )
    };
    format!("{} || {}", names("oldObject"), names("object"))
}

/// A pod that a WorkloadSpread has counted is deleted. Updates do not change the count.
fn is_a_counted_pod_deleted() -> String {
    let annotations = "oldObject.metadata.annotations";
    format!(
        "request.operation == 'DELETE' && oldObject != null && has({annotations}) && '{MATCHED}' in {annotations}"
    )
}

fn is_not_being_deleted() -> String {
    "oldObject != null && !has(oldObject.metadata.deletionTimestamp)".to_owned()
}

/// It is deleted, or its specification differs, or it has a new label that makes it unavailable.
fn becomes_unavailable() -> String {
    let (new, old) = ("object.metadata.labels", "oldObject.metadata.labels");
    format!(
        "request.operation == 'DELETE' || object.spec != oldObject.spec || (has({new}) && {new}.exists(key, \
         key.startsWith('{UNAVAILABLE_PREFIX}') && !(has({old}) && key in {old})))"
    )
}
