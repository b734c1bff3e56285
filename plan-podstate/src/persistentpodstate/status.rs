//! What a PersistentPodState reports.

use kruise_api::persistentpodstate::{PersistentPodState, PersistentPodStateStatus};
use kruise_plan_kit::{StatusPatch, Target};
use serde_json::{Map, Value, json};

/// The write of the status, if it differs from what is stored: a merge patch that names the records that changed and no
/// others, so that a report of a large workload stays small.
pub(super) fn patch(state: &PersistentPodState, status: &PersistentPodStateStatus) -> Option<StatusPatch> {
    let stored = &state.status;
    let mut changes = differences(&value(stored), &value(status));
    if changes.is_empty() {
        return None;
    }
    // The definition requires it, and a status that was never written has none.
    changes.insert("observedGeneration".to_owned(), status.observed_generation.into());
    let metadata = &state.metadata;
    Some(StatusPatch {
        target: Target {
            resource: kruise_api::persistentpodstate::RESOURCE,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        },
        version: metadata.resource_version.clone(),
        patch: json!({"status": changes}),
        urgent: stored.observed_generation != status.observed_generation,
    })
}

fn value(status: &PersistentPodStateStatus) -> Value {
    serde_json::to_value(status).unwrap_or_default()
}

/// The members of a merge patch that turns one object into another.
fn differences(before: &Value, after: &Value) -> Map<String, Value> {
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (before, after) = (members(before), members(after));
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let mut changes: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in after {
        match before.get(&key) {
            Some(old) if *old == value => {}
            Some(old) if old.is_object() && value.is_object() => {
                changes.insert(key, differences(old, &value).into());
            }
            _ => drop(changes.insert(key, value)),
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::differences;

    #[test]
    fn a_patch_names_what_differs_at_any_depth() {
        let before = json!({"a": {"x": "1", "y": "2"}, "b": {"x": "1"}, "c": 1});
        let after = json!({"a": {"x": "1", "y": "3"}, "c": 1, "d": {"z": "1"}});
        let patch = json!({"a": {"y": "3"}, "b": null, "d": {"z": "1"}});
        assert_eq!(serde_json::Value::from(differences(&before, &after)), patch);
        assert!(differences(&after, &after).is_empty());
    }
}
