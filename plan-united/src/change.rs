//! The patch from a workload as it is to what it is to be.

use serde_json::{Map, Value};

/// A merge patch that makes an object what it is to be; `None` if it is that already. `before` is what was set last
/// time: what it has and `desired` has not goes. What is in neither stays as it is.
///
/// Lists are sent whole. One stays as it is if nothing else was set last time, and it has all that is to be in it.
pub(crate) fn patch(before: &Value, desired: &Value, actual: &Value) -> Option<Value> {
    let (Value::Object(wanted), Value::Object(present)) = (desired, actual) else {
        let is_current = match desired {
            Value::Array(_) => actual == desired || (before == desired && covers(actual, desired)),
            _ => actual == desired,
        };
        return (!is_current).then(|| desired.clone());
    };
    let mut changed = Map::new();
    for (key, desired) in wanted {
        let change = match present.get(key) {
            None => Some(desired.clone()),
            Some(actual) => patch(before.get(key).unwrap_or(&Value::Null), desired, actual),
        };
        changed.extend(change.map(|change| (key.clone(), change)));
    }
    let earlier = before.as_object().into_iter().flat_map(Map::keys);
    let gone = earlier.filter(|key| !wanted.contains_key(*key) && present.contains_key(*key));
    changed.extend(gone.map(|key| (key.clone(), Value::Null)));
    (!changed.is_empty()).then_some(Value::Object(changed))
}

/// Has the one all that is in the other? Lists have as many items.
pub(crate) fn covers(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| covers(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| covers(whole, part))
        }
        _ => whole == part,
    }
}

/// Without members that are null: a merge patch would remove them.
pub(crate) fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{patch, without_nulls};

    #[test]
    fn what_was_set_before_goes_and_what_others_set_stays() {
        let before = json!({"spec": {"a": 1, "gone": 1, "same": {"x": 1}}});
        let desired = json!({"spec": {"a": 2, "new": true, "same": {"x": 1}}});
        let actual = json!({"spec": {"a": 1, "gone": 1, "same": {"x": 1, "theirs": 2}, "theirs": 3}});
        let expected = json!({"spec": {"a": 2, "new": true, "gone": null}});
        assert_eq!(patch(&before, &desired, &actual), Some(expected));
        assert_eq!(patch(&desired, &desired, &desired), None);
        assert_eq!(
            patch(&before, &json!({"spec": {}}), &json!({"spec": {"theirs": 3}})),
            None
        );
    }

    #[test]
    fn lists_are_sent_whole_unless_only_defaults_differ() {
        let list = |items: Value| json!({"containers": items});
        let desired = list(json!([{"name": "main", "image": "api:1"}]));
        let defaulted = list(json!([{"name": "main", "image": "api:1", "pull": "Always"}]));
        assert_eq!(patch(&desired, &desired, &defaulted), None);
        assert_eq!(patch(&Value::Null, &desired, &defaulted), Some(desired.clone()));
        let with_env = list(json!([{"name": "main", "image": "api:1", "env": [{"name": "A"}]}]));
        assert_eq!(patch(&with_env, &desired, &with_env), Some(desired.clone()));
        assert_eq!(patch(&desired, &desired, &list(json!([]))), Some(desired));
    }

    #[test]
    fn nulls_are_left_out_of_what_is_sent() {
        let mut value = json!({"a": null, "list": [{"b": null, "c": 1}]});
        without_nulls(&mut value);
        assert_eq!(value, json!({"list": [{"c": 1}]}));
    }
}
