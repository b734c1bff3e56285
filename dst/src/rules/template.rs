//! Templates in revisions and in specifications.

use serde_json::Map;

use crate::rules::prelude::*;

/// Compares templates but for what only their stored form has.
pub fn same_template(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => same_members(stored, wanted, &["$patch"]),
        _ => same(stored, wanted),
    }
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => same_members(left, right, &[]),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => left == right,
    }
}

fn same_members(left: &Map<String, Value>, right: &Map<String, Value>, but: &[&str]) -> bool {
    let counts = |(name, value): &(&String, &Value)| !but.contains(&name.as_str()) && !is_nothing(value);
    let mut left = left.iter().filter(counts);
    let mut right = right.iter().filter(counts);
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some((name, value)), Some((other, wanted))) if name == other && same(value, wanted) => {}
            _ => return false,
        }
    }
}

/// Members without content mean nothing: Go writes some of them.
fn is_nothing(member: &Value) -> bool {
    match member {
        Value::Object(members) => members.values().all(is_nothing),
        other => other.is_null(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_without_content_make_no_difference() {
        let stored =
            json!({"$patch": "replace", "spec": {"a": [{"b": null}, {}, null], "c": {"d": {"e": null}}}});
        assert!(same_template(
            &stored,
            &json!({"spec": {"a": [{}, {"f": {}}, null]}, "metadata": null})
        ));
        assert!(!same_template(&stored, &json!({"spec": {"a": [{}, {}]}})));
        assert!(!same_template(
            &stored,
            &json!({"spec": {"a": [{}, {}, null], "c": {"d": 0}}})
        ));
        assert!(!same_template(
            &json!({"spec": {"$patch": 1}}),
            &json!({"spec": {}})
        ));
    }
}
