use serde_json::{Value, json};

use super::PatchError;
use crate::table::Table;

fn strategic(pod: Value, patch: Value) -> Result<Value, PatchError> {
    let table = Table::builtin();
    super::strategic(table, table.find("core/v1.Pod").unwrap(), pod, patch)
}

fn names(value: &Value, path: &str) -> Vec<String> {
    let items = value.pointer(path).unwrap().as_array().unwrap();
    items
        .iter()
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_merge_patch_merges_objects_replaces_lists_and_removes_nulls() {
    let mut value = json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
    super::merge(
        &mut value,
        json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [3]}),
    );
    assert_eq!(value, json!({"a": {"c": 2, "d": {"f": 1}}, "l": [3]}));
}

#[test]
fn a_json_patch_applies_as_a_whole_or_not_at_all() {
    let mut value = json!({"a": ["x", "y"], "b": {"c/d": 1}});
    let patch = json!([
        {"op": "test", "path": "/a/0", "value": "x"},
        {"op": "add", "path": "/a/1", "value": "z"},
        {"op": "add", "path": "/a/-", "value": "end"},
        {"op": "replace", "path": "/b/c~1d", "value": 2},
        {"op": "copy", "from": "/b", "path": "/e"},
        {"op": "move", "from": "/a/0", "path": "/f"},
        {"op": "remove", "path": "/b"},
    ]);
    super::json(&mut value, &patch).unwrap();
    assert_eq!(value, json!({"a": ["z", "y", "end"], "e": {"c/d": 2}, "f": "x"}));
    let before = value.clone();
    for bad in [
        json!([{"op": "remove", "path": "/f"}, {"op": "test", "path": "/e", "value": 1}]),
        json!([{"op": "remove", "path": "/none"}]),
        json!([{"op": "replace", "path": "/none/x", "value": 1}]),
        json!([{"op": "replace", "path": "/a/9", "value": 1}]),
        json!([{"op": "add", "path": "/none/x", "value": 1}]),
        json!([{"op": "add", "path": "/a/9", "value": 1}]),
    ] {
        assert!(matches!(
            super::json(&mut value, &bad),
            Err(PatchError::Inapplicable(_))
        ));
        assert_eq!(value, before);
    }
}

#[test]
fn keyed_lists_merge_and_new_items_come_first_in_the_order_of_the_patch() {
    let pod = json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}});
    let patch = json!({"spec": {"containers": [{"name": "c", "image": "2"}, {"name": "b", "image": "2"}]}});
    let merged = strategic(pod, patch).unwrap();
    assert_eq!(names(&merged, "/spec/containers"), ["c", "a", "b"]);
    assert_eq!(merged["spec"]["containers"][2]["image"], "2");
}

#[test]
fn an_order_directive_orders_and_a_marker_deletes() {
    let pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}});
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
        "containers": [{"name": "b", "$patch": "delete"}, {"name": "a", "image": "x"}],
    }});
    let merged = strategic(pod, patch).unwrap();
    assert_eq!(names(&merged, "/spec/containers"), ["c", "a"]);
}

#[test]
fn sets_of_scalars_merge_and_items_are_deleted_from_them() {
    let pod = json!({"metadata": {"finalizers": ["a", "b"]}});
    let merged = strategic(pod.clone(), json!({"metadata": {"finalizers": ["c", "a"]}})).unwrap();
    assert_eq!(merged["metadata"]["finalizers"], json!(["c", "a", "b"]));
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}});
    let merged = strategic(pod, patch).unwrap();
    assert_eq!(merged["metadata"]["finalizers"], json!(["b"]));
}

#[test]
fn retained_keys_drop_the_others() {
    let pod = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let patch = json!({"spec": {"volumes": [
        {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}}]}});
    let merged = strategic(pod.clone(), patch).unwrap();
    assert_eq!(
        merged["spec"]["volumes"],
        json!([{"name": "v", "configMap": {"name": "m"}}])
    );
    let bad = json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name"], "configMap": {}}]}});
    assert!(matches!(strategic(pod, bad), Err(PatchError::Malformed(_))));
}

#[test]
fn an_item_without_its_key_is_refused() {
    let pod = json!({"spec": {"containers": [{"name": "a"}]}});
    let patch = json!({"spec": {"containers": [{"image": "x"}]}});
    assert!(matches!(strategic(pod, patch), Err(PatchError::Unsupported(_))));
}

#[test]
fn replace_replaces_objects_and_lists() {
    let pod = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "a"}], "tolerations": [{"key": "x"}]}});
    let patch = json!({"metadata": {"labels": {"$patch": "replace", "b": "2"}},
        "spec": {"containers": [{"$patch": "replace"}, {"name": "z"}], "tolerations": [{"key": "y"}]}});
    let merged = strategic(pod, patch).unwrap();
    assert_eq!(merged["metadata"]["labels"], json!({"b": "2"}));
    assert_eq!(names(&merged, "/spec/containers"), ["z"]);
    assert_eq!(merged["spec"]["tolerations"], json!([{"key": "y"}]));
}
