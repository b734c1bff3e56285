//! Paths in raw JSON, as a list of names, or as a pattern that matches many places.

use serde_json::{Map, Value, json};

/// Removes a member, and with it a map of labels or annotations that becomes empty.
pub fn take(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let parent = parents
        .iter()
        .try_fold(&mut *object, |at, key| at.get_mut(*key))?;
    let taken = parent.as_object_mut()?.remove(*last)?;
    let emptied = parent.as_object().is_some_and(Map::is_empty);
    if emptied && path.first() == Some(&"metadata") {
        let (map, parents) = parents.split_last()?;
        let owner = parents.iter().try_fold(object, |at, key| at.get_mut(*key))?;
        owner.as_object_mut()?.remove(*map);
    }
    Some(taken)
}

/// Sets a member and creates the objects on its path. If a value on the path is no object, nothing changes.
pub fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut at = object;
    for key in parents {
        if at.is_null() {
            *at = json!({});
        }
        let Some(members) = at.as_object_mut() else { return };
        at = members.entry(*key).or_insert(Value::Null);
    }
    if at.is_null() {
        *at = json!({});
    }
    if let Some(members) = at.as_object_mut() {
        members.insert((*last).to_owned(), value);
    }
}

/// The value at a path.
pub fn get<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |at, key| at.get(*key))
}

/// Calls with every object that holds a place of the pattern, and the name of the member there. In a pattern, `a.b`
/// is a member of a member, `a[].b` one of each item of a list, `a{}.b` one of each value of a map;
/// `a{}[].b` matches the items of lists that are values of a map.
pub fn each(object: &mut Value, pattern: &str, act: &mut dyn FnMut(&mut Map<String, Value>, &str)) {
    let Some((first, rest)) = pattern.split_once('.') else {
        if let Some(members) = object.as_object_mut() {
            act(members, pattern);
        }
        return;
    };
    let name = first.trim_end_matches(['[', ']', '{', '}']);
    let suffix = first.get(name.len()..).unwrap_or_default();
    if let Some(member) = object.get_mut(name) {
        inside(member, suffix, rest, act);
    }
}

/// The rest of a pattern, in the items and values that the suffix stands for.
fn inside(value: &mut Value, suffix: &str, rest: &str, act: &mut dyn FnMut(&mut Map<String, Value>, &str)) {
    if let Some(suffix) = suffix.strip_prefix("[]") {
        for item in value.as_array_mut().into_iter().flatten() {
            inside(item, suffix, rest, act);
        }
    } else if let Some(suffix) = suffix.strip_prefix("{}") {
        for (_, value) in value.as_object_mut().into_iter().flatten() {
            inside(value, suffix, rest, act);
        }
    } else {
        each(value, rest, act);
    }
}
