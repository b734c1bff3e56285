//! Reading and filling in JSON that may be of any shape. What has the wrong type reads as absent and is not touched:
//! the server's schema refuses it with a better message than ours.

use serde_json::{Map, Value};

/// A member that is an object.
pub(crate) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| value.is_object())
}

/// A string; empty if absent.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list; none if absent.
pub(crate) fn items<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object
        .get(name)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// A member that is set: not `null`.
pub(crate) fn present<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// A member that is a whole number.
pub(crate) fn integer(object: &Value, name: &str) -> Option<i64> {
    object.get(name)?.as_i64()
}

/// Sets a member that is absent, `null` or an empty text.
pub(crate) fn fill(object: &mut Value, name: &str, default: impl Into<Value>) {
    let is_empty = object
        .get(name)
        .is_none_or(|value| value.is_null() || value.as_str() == Some(""));
    if let (true, Some(members)) = (is_empty, object.as_object_mut()) {
        members.insert(name.to_owned(), default.into());
    }
}

/// A member that is an object, made if it is absent; `None` if it is something else.
pub(crate) fn made<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    fill(object, name, Map::new());
    object.get_mut(name).filter(|value| value.is_object())
}
