//! The difference of two objects as a JSON Patch.
//!
//! Lists are compared item by item, by name where items have one: what was inserted is added at its place, of what
//! changed only the changed members are named, and what stayed is not named. Applying the patch gives the new
//! object, always.

use serde_json::{Value, json};

/// Operations that turn `old` into `new`, in order.
pub(crate) fn between(old: &Value, new: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    compare(old, new, String::new(), &mut operations);
    operations
}

fn compare(old: &Value, new: &Value, path: String, operations: &mut Vec<Value>) {
    if old == new {
        return;
    }
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in after {
                let path = format!("{path}/{}", escaped(name));
                match before.get(name) {
                    Some(old) => compare(old, value, path, operations),
                    None => operations.push(json!({"op": "add", "path": path, "value": value})),
                }
            }
            let gone = before.keys().filter(|name| !after.contains_key(*name));
            operations.extend(
                gone.map(|name| json!({"op": "remove", "path": format!("{path}/{}", escaped(name))})),
            );
        }
        (Value::Array(before), Value::Array(after)) => {
            let already = operations.len();
            if insert(before, after, &path, operations).is_none() {
                operations.truncate(already);
                operations.push(json!({"op": "replace", "path": path, "value": new}));
            }
        }
        _ => operations.push(json!({"op": "replace", "path": path, "value": new})),
    }
}

/// `None` if an item went away or moved: then the list has to be replaced.
fn insert(before: &[Value], after: &[Value], path: &str, operations: &mut Vec<Value>) -> Option<()> {
    let mut left = before.iter().peekable();
    for (index, item) in after.iter().enumerate() {
        let path = format!("{path}/{index}");
        match left.next_if(|old| is_same(old, item)) {
            Some(old) => compare(old, item, path, operations),
            None => operations.push(json!({"op": "add", "path": path, "value": item})),
        }
    }
    left.next().is_none().then_some(())
}

/// Do both stand for one thing?
fn is_same(old: &Value, new: &Value) -> bool {
    match (old.get("name"), new.get("name")) {
        (Some(old), Some(new)) => old == new,
        _ => old == new,
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(old: &Value, new: &Value) -> Value {
        let patch: json_patch::Patch = serde_json::from_value(between(old, new).into()).unwrap();
        let mut result = old.clone();
        json_patch::patch(&mut result, &patch).unwrap();
        result
    }

    #[test]
    fn inserted_items_are_added_at_their_place() {
        let (a, b) = (json!({"name": "a", "x": 1}), json!({"name": "b"}));
        let old = json!({"list": [a]});
        let new = json!({"list": [b, a, {"name": "c"}]});
        assert_eq!(
            between(&old, &new),
            [
                json!({"op": "add", "path": "/list/0", "value": b}),
                json!({"op": "add", "path": "/list/2", "value": {"name": "c"}}),
            ]
        );
        assert_eq!(applied(&old, &new), new);
    }

    #[test]
    fn of_an_item_that_changed_only_the_change_is_named() {
        let old = json!([{"name": "a"}, {"name": "b", "x": 1}]);
        let new = json!([{"name": "z"}, {"name": "a"}, {"name": "b", "x": 2}]);
        let found = between(&old, &new);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], json!({"op": "replace", "path": "/2/x", "value": 2}));
        assert_eq!(applied(&old, &new), new);
    }

    #[test]
    fn whatever_changed_applying_the_patch_gives_it() {
        let values = [
            json!({}),
            json!({"a/b~": {"c": [1, 2, 3]}}),
            json!({"a/b~": {"c": [3, 1, 2], "d": null}}),
            json!({"a/b~": null, "e": [{"name": "x"}, {"name": "y"}]}),
            json!({"e": [{"name": "y"}, {"name": "x"}]}),
            json!({"e": "text"}),
        ];
        for old in &values {
            for new in &values {
                assert_eq!(&applied(old, new), new, "{old} to {new}");
            }
            assert!(between(old, old).is_empty());
        }
    }
}
