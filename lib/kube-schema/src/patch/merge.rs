//! RFC 7386.

use serde_json::{Map, Value};

/// Kubernetes removes `null` members from objects in lists too.
fn without_nulls(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members
                .values_mut()
                .for_each(|member| *member = without_nulls(member.take()));
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| *item = without_nulls(item.take())),
        _ => {}
    }
    value
}

/// Applies a merge patch: members of objects are merged, `null` removes, everything else replaces.
pub fn apply(target: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        *target = without_nulls(patch);
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
