//! The difference of two templates' metadata, key by key.

use serde_json::{Map, Value};

/// The strategic merge patch that takes `labels`, `annotations` and `finalizers` from one template's metadata to
/// another's.
///
/// A dropped key becomes `null` by itself. A whole map never does, not even when its last key was dropped: the object
/// to patch carries keys of other writers too. Empty if there is no difference.
pub fn metadata_patch(old: &Value, new: &Value) -> Value {
    let mut patch = Map::new();
    for name in ["labels", "annotations"] {
        let changes = changes(object(old, name), object(new, name));
        if !changes.is_empty() {
            patch.insert(name.to_owned(), Value::Object(changes));
        }
    }
    let (before, after) = (finalizers(old), finalizers(new));
    let missing = |from: &[Value], among: &[Value]| -> Vec<Value> {
        from.iter()
            .filter(|item| !among.contains(item))
            .cloned()
            .collect()
    };
    let lists = [
        ("finalizers", missing(after, before)),
        ("$deleteFromPrimitiveList/finalizers", missing(before, after)),
    ];
    patch.extend(
        lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| (name.to_owned(), list.into())),
    );
    Value::Object(patch)
}

fn member<'a>(template: &'a Value, name: &str) -> Option<&'a Value> {
    template.get("metadata")?.get(name)
}

fn object<'a>(template: &'a Value, name: &str) -> Option<&'a Map<String, Value>> {
    member(template, name)?.as_object()
}

fn finalizers(template: &Value) -> &[Value] {
    member(template, "finalizers")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn changes(old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) -> Map<String, Value> {
    let old_value = |key: &String| old.and_then(|members| members.get(key));
    let written = new
        .into_iter()
        .flatten()
        .filter(|(key, value)| old_value(key) != Some(value));
    let dropped = old
        .into_iter()
        .flatten()
        .filter(|(key, _)| new.is_none_or(|members| !members.contains_key(*key)));
    written
        .map(|(key, value)| (key.clone(), value.clone()))
        .chain(dropped.map(|(key, _)| (key.clone(), Value::Null)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::metadata_patch;

    fn patch(old: &Value, new: &Value) -> Value {
        metadata_patch(&json!({"metadata": old}), &json!({"metadata": new}))
    }

    #[test]
    fn only_differences_are_patched() {
        let old = json!({"labels": {"a": "1", "b": "2", "c": "3"}, "annotations": {"x": "y"}});
        let new = json!({"labels": {"a": "1", "b": "3", "d": "4"}, "annotations": {"x": "y"}});
        assert_eq!(
            patch(&old, &new),
            json!({"labels": {"b": "3", "c": null, "d": "4"}})
        );
        assert_eq!(patch(&old, &old), json!({}));
    }

    #[test]
    fn dropping_the_last_key_does_not_drop_the_map() {
        let old = json!({"annotations": {"x": "y"}});
        for new in [
            json!({}),
            json!({"annotations": {}}),
            json!({"annotations": null}),
            Value::Null,
        ] {
            assert_eq!(patch(&old, &new), json!({"annotations": {"x": null}}));
        }
        assert_eq!(patch(&json!({}), &old), old);
    }

    #[test]
    fn finalizers_are_added_and_deleted_one_by_one() {
        assert_eq!(
            patch(
                &json!({"finalizers": ["a", "b"]}),
                &json!({"finalizers": ["b", "c"]})
            ),
            json!({"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]})
        );
        assert_eq!(
            patch(&json!({"finalizers": ["a"]}), &json!({})),
            json!({"$deleteFromPrimitiveList/finalizers": ["a"]})
        );
    }
}
