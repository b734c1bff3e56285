//! Reading JSON that may be of any shape. What has the wrong type reads as absent: the server's decoder refuses it
//! with a better message than ours.

use serde_json::Value;

/// A string; empty if absent.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn integer(object: &Value, name: &str) -> Option<i64> {
    object.get(name)?.as_i64()
}

/// A member that is an object.
pub(super) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| value.is_object())
}

/// The items of a list, each with its path.
pub(super) fn items<'a>(
    object: &'a Value,
    name: &str,
    path: &str,
) -> impl Iterator<Item = (&'a Value, String)> {
    let list = object.get(name).and_then(Value::as_array).into_iter().flatten();
    list.enumerate()
        .map(move |(index, item)| (item, format!("{path}.{name}[{index}]")))
}

/// How many of these members are objects.
pub(super) fn known(object: &Value, names: &[&str]) -> usize {
    names.iter().filter(|name| member(object, name).is_some()).count()
}
