//! Members of a patch that say how to merge, rather than what.

use serde_json::{Map, Value};

use super::{Object, PatchError};

/// `replace`, `delete`, or (implied) `merge`.
pub(super) const MARKER: &str = "$patch";
/// The members to keep.
const RETAIN: &str = "$retainKeys";
/// The order of a merged list.
pub(super) const SET_ORDER: &str = "$setElementOrder/";
/// Items to remove from a list of scalars.
pub(super) const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// A marker that is none, and the item or object that has it.
pub(super) fn unknown(marker: &Value, of: &Value) -> PatchError {
    PatchError::Unsupported(format!(
        "unknown patch type: {} in map: {}",
        go_value(marker),
        go_value(of)
    ))
}

/// A value as Go prints maps and slices, as in the messages of a server about patches.
pub fn go_value(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter();
            let members: Vec<String> = members
                .map(|(name, member)| format!("{name}:{}", go_value(member)))
                .collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".into(),
        other => other.to_string(),
    }
}

/// Drops members that the patch does not list, if it lists any.
pub(super) fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(listed) = patch.remove(RETAIN) else {
        return Ok(());
    };
    let bad = || PatchError::Malformed("invalid patch format of retainKeys".into());
    let listed = listed.as_array().ok_or_else(bad)?.clone();
    let is_listed = |name: &str| listed.iter().any(|one| one.as_str() == Some(name));
    let unlisted = patch.iter().any(|(name, value)| {
        !value.is_null() && !name.starts_with(DELETE_FROM) && !name.starts_with(SET_ORDER) && !is_listed(name)
    });
    if unlisted {
        return Err(bad());
    }
    original.retain(|name, _| is_listed(name));
    Ok(())
}

/// Removes `null` members at any depth: a patch that adds an object removes nothing from it.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// A value that is taken over whole, without its directives; `None` if it is nothing but one.
pub(super) fn strip(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) => {
            if let Some(marker) = members.get(MARKER)
                && marker != "replace"
                && marker != "merge"
            {
                return None;
            }
            let members = members.into_iter().filter(|(name, _)| {
                name != MARKER
                    && name != RETAIN
                    && !name.starts_with(SET_ORDER)
                    && !name.starts_with(DELETE_FROM)
            });
            let kept: Map<String, Value> = members
                .filter_map(|(name, member)| Some((name, strip(member)?)))
                .collect();
            Some(Value::Object(kept))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(strip).collect())),
        scalar => Some(scalar),
    }
}
