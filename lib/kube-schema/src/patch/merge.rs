//! RFC 7386.

use serde_json::{Map, Value};

/// Applies a merge patch: members of objects are merged, `null` removes, everything else replaces.
pub fn apply(target: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(into) = target else { return };
    for (name, value) in members {
        if value.is_null() {
            into.remove(&name);
        } else {
            apply(into.entry(name).or_insert(Value::Null), value);
        }
    }
}
