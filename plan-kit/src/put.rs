//! Building patches member by member.

use serde_json::{Map, Value};

/// Sets the member at a path of keys. Objects on the way are made; what is there and is no object is replaced.
pub fn put(into: &mut Value, path: &[&str], value: Value) {
    let Some((key, rest)) = path.split_first() else {
        *into = value;
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    if let Some(object) = into.as_object_mut() {
        put(object.entry(*key).or_insert(Value::Null), rest, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::put;

    #[test]
    fn objects_on_the_way_are_made_and_neighbours_stay() {
        let mut patch = json!({"metadata": {"labels": {"a": "1"}}, "status": "text"});
        put(&mut patch, &["metadata", "labels", "b/c"], json!("2"));
        put(&mut patch, &["status", "ready"], json!(true));
        assert_eq!(
            patch,
            json!({"metadata": {"labels": {"a": "1", "b/c": "2"}}, "status": {"ready": true}})
        );
    }
}
