//! What is stored, as oracles and users read it: what is absent is empty, zero, or nothing.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::engine::oracles::Object;

/// The elements of a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Texts of a list.
pub fn texts(value: &Value) -> impl Iterator<Item = &str> {
    items(value).filter_map(Value::as_str)
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
pub fn named<'v, N>(list: &'v Value, name: &N) -> Option<&'v Value>
where
    N: ?Sized,
    Value: PartialEq<N>,
{
    items(list).find(|one| one["name"] == *name)
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
    scaled(value, all, absent, f64::ceil)
}

/// A number, or a percentage of all rounded down; `absent` if there is none.
pub fn rounded_down(value: &Value, all: i64, absent: i64) -> i64 {
    scaled(value, all, absent, f64::floor)
}

fn scaled(value: &Value, all: i64, absent: i64, round: fn(f64) -> f64) -> i64 {
    let Value::String(text) = value else {
        return value.as_i64().unwrap_or(absent);
    };
    let percent: f64 = text.trim_end_matches('%').parse().unwrap_or(0.0);
    round(percent * all as f64 / 100.0) as i64
}

/// Pods that a partition keeps, of so many. A percentage below all leaves at least one to update, if there are several.
pub fn kept(partition: &Value, of: i64) -> i64 {
    let kept = rounded_up(partition, of, 0);
    let is_all = of > 1 && kept >= of && partition.is_string() && partition != "100%";
    (if is_all { of - 1 } else { kept }).clamp(0, of)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn percentages_are_rounded_as_documented() {
        let of = |value: &str, all| {
            let value = json!(value);
            (
                rounded_down(&value, all, 9),
                rounded_up(&value, all, 9),
                kept(&value, all),
            )
        };
        assert_eq!(of("20%", 7), (1, 2, 2));
        assert_eq!(of("50%", 4), (2, 2, 2));
        assert_eq!(of("99%", 5), (4, 5, 4));
        assert_eq!(of("100%", 5), (5, 5, 5));
        assert_eq!(of("0.5%", 5), (0, 1, 1));
        assert_eq!(of("1%", 1), (0, 1, 1));
        assert_eq!(
            [rounded_up(&json!(3), 1, 0), rounded_up(&Value::Null, 3, 1)],
            [3, 1]
        );
        assert_eq!(kept(&json!(7), 3), 3);
    }
}
