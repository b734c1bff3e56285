//! Annotations that a set patches into pods.

use go_compat::json::to_go_json;
use kube_schema::patch;
use serde_json::{Map, Value};

use crate::pod::{annotate, entry, items, text};

/// Applies the patches of a set in their order; an error says which annotation cannot be merged.
pub(super) fn patch(pod: &mut Value, spec: &Value) -> Result<(), String> {
    for patch in items(spec, "patchPodMetadata") {
        let annotations: Option<&Map<String, Value>> = patch.get("annotations").and_then(Value::as_object);
        for (key, value) in annotations.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            let present = entry(pod, "annotations", key);
            let result = match (text(patch, "patchPolicy"), present) {
                ("Retain", None) | ("Overwrite", _) | ("MergePatchJson", None | Some("")) => value.to_owned(),
                ("MergePatchJson", Some(present)) => merged(key, present, value)?,
                _ => continue,
            };
            annotate(pod, key, result);
        }
    }
    Ok(())
}

fn merged(key: &str, present: &str, patch: &str) -> Result<String, String> {
    let parse = |text: &str, whose: &str| {
        serde_json::from_str::<Value>(text).map_err(|error| format!("{key} of {whose} is not JSON: {error}"))
    };
    let (mut target, patch) = (parse(present, "the pod")?, parse(patch, "the set")?);
    patch::merge(&mut target, patch);
    Ok(to_go_json(&target))
}
