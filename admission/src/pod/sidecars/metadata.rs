//! Annotations that a set patches into pods.

use kruise_plan_kit::sidecars::patched;
use serde_json::{Map, Value};

use crate::json::{items, text};
use crate::pod::draft::{annotate, entry};

/// Applies the patches of a set in their order; an error says which annotation cannot be merged.
pub(super) fn patch(pod: &mut Value, spec: &Value) -> Result<(), String> {
    for patch in items(spec, "patchPodMetadata") {
        let annotations: Option<&Map<String, Value>> = patch.get("annotations").and_then(Value::as_object);
        for (key, value) in annotations.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            let present = entry(pod, "annotations", key);
            let result = patched(text(patch, "patchPolicy"), present, value)
                .map_err(|error| format!("{key} {error}"))?;
            if let Some(result) = result {
                annotate(pod, key, result);
            }
        }
    }
    Ok(())
}
