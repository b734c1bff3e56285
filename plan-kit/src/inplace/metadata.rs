//! The difference of two templates' metadata, key by key.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Strategic merge patch that takes a pod's `labels`, `annotations` and `finalizers` from one template to another. Keys
/// that the new template dropped become null one by one, never a whole map: a pod carries keys of other writers too.
pub(super) fn metadata_patch(old: &Value, new: &Value) -> Value {
    let mut patch = Map::new();
    for map in ["labels", "annotations"] {
        let difference = map_difference(member(old, map), member(new, map));
        if !difference.is_empty() {
            patch.insert(map.into(), Value::Object(difference));
        }
    }
    let (before, after) = (finalizers(old), finalizers(new));
    let added: Vec<&&str> = after.difference(&before).collect();
    let dropped: Vec<&&str> = before.difference(&after).collect();
    if !added.is_empty() {
        patch.insert("finalizers".into(), json!(added));
    }
    if !dropped.is_empty() {
        patch.insert("$deleteFromPrimitiveList/finalizers".into(), json!(dropped));
    }
    Value::Object(patch)
}

fn member<'a>(template: &'a Value, name: &str) -> Option<&'a Value> {
    template.get("metadata")?.get(name)
}

fn map_difference(old: Option<&Value>, new: Option<&Value>) -> Map<String, Value> {
    let none = Map::new();
    let old = old.and_then(Value::as_object).unwrap_or(&none);
    let new = new.and_then(Value::as_object).unwrap_or(&none);
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    let dropped = old.keys().filter(|key| !new.contains_key(*key));
    changed
        .map(|(key, value)| (key.clone(), value.clone()))
        .chain(dropped.map(|key| (key.clone(), Value::Null)))
        .collect()
}

fn finalizers(template: &Value) -> BTreeSet<&str> {
    let list = member(template, "finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::metadata_patch;

    #[test]
    fn keys_are_dropped_one_by_one_and_finalizers_item_by_item() {
        let old = json!({"metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x", "y"]}});
        let new =
            json!({"metadata": {"labels": {"a": "1"}, "annotations": {"c": "3"}, "finalizers": ["y", "z"]}});
        assert_eq!(
            metadata_patch(&old, &new),
            json!({"labels": {"b": null}, "annotations": {"c": "3"}, "finalizers": ["z"],
                   "$deleteFromPrimitiveList/finalizers": ["x"]})
        );
    }
}
