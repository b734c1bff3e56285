//! Fields of raw JSON, which count as empty where they are absent.

use serde_json::Value;

/// The items of a list in an object; none if it is absent or something else.
pub(super) fn items<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    let list = object.get(name).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// A string; empty if absent.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// An annotation; empty if absent.
pub(super) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    let annotations = object.pointer("/metadata/annotations");
    annotations
        .and_then(|annotations| annotations.get(name)?.as_str())
        .unwrap_or_default()
}
