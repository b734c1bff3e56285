//! Filling in members of JSON objects. A `null` counts as absent, as it does when Go reads it.

use go_compat::quantity::Quantity;
use serde_json::{Map, Value};

/// Sets a member that is absent, `null`, `""` or 0.
pub(super) fn fill(object: &mut Value, name: &str, default: impl Into<Value>) {
    let empty = match object.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(_) => false,
    };
    if empty {
        set(object, name, default.into());
    }
}

/// Sets a member that is absent or `null`: one whose empty value has a meaning of its own.
pub(super) fn fill_missing(object: &mut Value, name: &str, default: impl Into<Value>) {
    if object.get(name).is_none_or(Value::is_null) {
        set(object, name, default.into());
    }
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(name.to_owned(), value);
    }
}

/// A member that is an object.
pub(super) fn member<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    object.get_mut(name).filter(|value| value.is_object())
}

/// A member that is an object, made if absent.
pub(super) fn object_or_insert<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    fill_missing(object, name, Map::new());
    member(object, name)
}

/// Calls `action` for every object of a list.
pub(super) fn each(object: &mut Value, name: &str, action: impl FnMut(&mut Value)) {
    let items = object
        .get_mut(name)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    items.filter(|item| item.is_object()).for_each(action);
}

/// Rounds the quantities of a map up to whole thousandths; others keep their spelling.
pub(super) fn round_quantities(object: &mut Value, name: &str) {
    for value in object
        .get_mut(name)
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
    {
        let Ok(quantity) = Quantity::from_json(value) else {
            continue;
        };
        let rounded = quantity.round_up_to_milli();
        if rounded != quantity {
            *value = rounded.canonical().into();
        }
    }
}
