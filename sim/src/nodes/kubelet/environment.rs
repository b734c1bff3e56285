//! Environment variables that come from a pod's own labels and annotations: a process keeps the values that were there
//! when it began.

use serde_json::Value;

use crate::object::get_metadata;

/// Names for versions of injected containers; a change of them restarts nothing.
const EXCLUDED: [&str; 2] = ["SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT"];

/// Such variables of a container with the values that they would have now, in the order of names.
pub(super) fn read(container: &Value, pod: &Value) -> Vec<(String, String)> {
    let variables = container.get("env").and_then(Value::as_array);
    let one = |variable: &Value| {
        let name = variable.get("name")?.as_str()?;
        let path = variable.pointer("/valueFrom/fieldRef/fieldPath")?.as_str()?;
        let (map, key) = path.strip_prefix("metadata.")?.split_once("['")?;
        let key = key.strip_suffix("']")?;
        if !matches!(map, "labels" | "annotations") || EXCLUDED.contains(&name) {
            return None;
        }
        let value = get_metadata(pod, map).get(key).and_then(Value::as_str);
        Some((name.to_owned(), value.unwrap_or_default().to_owned()))
    };
    let mut read: Vec<_> = variables.into_iter().flatten().filter_map(one).collect();
    read.sort_unstable();
    read
}
