//! What commands read from objects of any kind.

use serde_json::Value;

/// The text at a JSON pointer; empty if there is none.
pub fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The condition of this type, if it is True.
pub fn condition<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    let mut conditions = object.pointer("/status/conditions")?.as_array()?.iter();
    conditions.find(|one| text(one, "/type") == kind && text(one, "/status") == "True")
}
