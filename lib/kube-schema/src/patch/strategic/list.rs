//! Merging lists: by key, or as sets of scalars.

use serde_json::Value;

use super::directive::{self, MARKER, SET_ORDER, go_value};
use super::order::{self, Listed};
use super::{Object, PatchError, Shape, merge_object};

/// Merges the lists whose order the patch sets, and takes them out of the patch.
pub(super) fn ordered(original: &mut Object, patch: &mut Object, shape: Shape<'_>) -> Result<(), PatchError> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|name| name.starts_with(SET_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let name = directive.strip_prefix(SET_ORDER).unwrap_or_default();
        let wanted = array(patch.remove(&directive).unwrap_or_default(), name)?;
        let (inner, merge) = shape.member(name);
        let old = original.remove(name).map(|old| array(old, name)).transpose()?;
        let new = patch.remove(name).map(|new| array(new, name)).transpose()?;
        check_order(new.as_deref().unwrap_or_default(), &wanted, merge.key)?;
        let before = Listed::of(old.as_deref().unwrap_or_default(), merge.key);
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(directive::strip).collect(),
            (Some(old), Some(new)) if merge.merges => self::merge(old, new, merge.key, inner)?,
            (Some(_), Some(new)) => new,
        };
        let wanted = Listed::of(&wanted, merge.key);
        let (listed, others) = partition(merged, &wanted, merge.key)?;
        let ordered = order::normalize(listed, others, &wanted, &before, merge.key);
        original.insert(name.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

/// Every item of the patch must be listed, in the same relative order.
fn check_order(patch: &[Value], wanted: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    let items = patch.iter().filter(|item| item.get(MARKER).is_none());
    let listed = Listed::of(wanted, key);
    let mut from = 0;
    for item in items {
        match listed.position_from(from, item, key) {
            Some(at) => from = at + 1,
            None => {
                return Err(PatchError::Unsupported(format!(
                    "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                    go_value(&Value::Array(patch.to_vec())),
                    go_value(&Value::Array(wanted.to_vec()))
                )));
            }
        }
    }
    Ok(())
}

fn array(value: Value, name: &str) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(PatchError::Unsupported(format!(
            "expected a list in field {name}"
        ))),
    }
}

/// Merges two lists; without a key they are lists of scalars.
pub(super) fn merge(
    mut old: Vec<Value>,
    new: Vec<Value>,
    key: Option<&str>,
    shape: Shape<'_>,
) -> Result<Vec<Value>, PatchError> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let is_object = old.iter().chain(&new).any(Value::is_object);
    if old.iter().chain(&new).any(|item| item.is_object() != is_object) {
        return Err(PatchError::Unsupported(
            "list element types are not identical".into(),
        ));
    }
    let before = Listed::of(&old, key);
    let (merged, listed) = if is_object {
        let Some(key) = key else {
            return Err(PatchError::Unsupported(
                "cannot merge lists without merge key".into(),
            ));
        };
        let new = apply_markers(&mut old, new, key)?;
        let listed = Listed::of(&new, Some(key));
        (merge_keyed(old, new, key, shape)?, listed)
    } else {
        let listed = Listed::of(&new, key);
        old.extend(new);
        (deduplicate(old), listed)
    };
    let (of_patch, others) = partition(merged, &listed, key)?;
    Ok(order::normalize(of_patch, others, &listed, &before, key))
}

/// Items with a marker delete their like, or replace the whole list; the others are returned.
fn apply_markers(old: &mut Vec<Value>, new: Vec<Value>, key: &str) -> Result<Vec<Value>, PatchError> {
    let mut rest = Vec::new();
    let mut replace = false;
    for item in new {
        match item.get(MARKER) {
            None => rest.push(item),
            Some(marker) if marker == "replace" => replace = true,
            Some(marker) if marker == "delete" => {
                let value = item.get(key).ok_or_else(|| no_key(&item, key))?;
                old.retain(|one| one.get(key) != Some(value));
            }
            Some(marker) => return Err(directive::unknown(marker, &item)),
        }
    }
    if replace {
        old.clear();
    }
    Ok(rest)
}

fn merge_keyed(
    mut old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
    shape: Shape<'_>,
) -> Result<Vec<Value>, PatchError> {
    for item in new {
        let value = item.get(key).ok_or_else(|| no_key(&item, key))?;
        let found = old.iter_mut().find(|one| one.get(key) == Some(value));
        match (found, item) {
            (Some(slot), Value::Object(item)) => {
                let before = match slot.take() {
                    Value::Object(members) => members,
                    _ => Object::new(),
                };
                *slot = Value::Object(merge_object(before, item, shape)?);
            }
            (_, item) => old.push(item),
        }
    }
    Ok(old)
}

/// Removes scalars from a list.
pub(super) fn delete_from(original: &mut Object, name: &str, doomed: &Value) -> Result<(), PatchError> {
    let Value::Array(doomed) = doomed else {
        return Err(PatchError::Malformed(
            "invalid patch format of primitive list".into(),
        ));
    };
    if let Some(Value::Array(items)) = original.get_mut(name) {
        items.retain(|item| !doomed.contains(item));
    }
    Ok(())
}

fn no_key(item: &Value, key: &str) -> PatchError {
    let item = go_value(item);
    PatchError::Unsupported(format!("map: {item} does not contain declared merge key: {key}"))
}

fn deduplicate(items: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        if !out.contains(&item) {
            out.push(item);
        }
    }
    out
}

/// The items that `by` lists, and the others.
fn partition(
    items: Vec<Value>,
    by: &Listed,
    key: Option<&str>,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    if let Some(key) = key
        && let Some(bare) = items.iter().find(|item| item.get(key).is_none())
    {
        return Err(no_key(bare, key));
    }
    Ok(items
        .into_iter()
        .partition(|item| by.position(item, key).is_some()))
}
