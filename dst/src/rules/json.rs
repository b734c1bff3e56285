//! What is stored, as oracles and users read it: what is absent is empty, zero, or nothing.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::engine::oracles::Object;

/// The elements of a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The elements of a list, one after the other.
pub fn items(value: &Value) -> std::slice::Iter<'_, Value> {
    list(value).iter()
}

/// Names and values of an object.
pub fn pairs(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.as_str(), value))
}

/// The element of a list with this `name`.
pub fn named<'v>(list: &'v Value, name: &str) -> Option<&'v Value> {
    items(list).find(|one| one["name"] == name)
}

/// A text, or `""`.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number, or zero.
pub fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// A time.
pub fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// So many seconds after a time, if both are there.
pub fn after(at: &Value, seconds: &Value) -> Option<Timestamp> {
    let seconds = SignedDuration::from_secs(seconds.as_i64()?);
    time(at)?.checked_add(seconds).ok()
}

/// Does a selector, of `matchLabels` only, select an object?
pub fn matches(selector: &Value, object: &Object) -> bool {
    pairs(&selector["matchLabels"]).all(|(key, value)| object.label(key) == value)
}

/// A number, or a percentage of all rounded up; `absent` if there is none.
pub fn rounded_up(value: &Value, all: i64, absent: i64) -> i64 {
    match value {
        Value::String(text) => (percent(text) * all + 99) / 100,
        other => other.as_i64().unwrap_or(absent),
    }
}

fn percent(text: &str) -> i64 {
    text.trim_end_matches('%').parse().unwrap_or(0)
}
