//! An object without some of its fields.

use serde_json::Value;

use super::set::FieldSet;
use super::shape::{Atom, Shape};

/// The object without the fields of a set, and what is below them. What has nothing left is null.
pub fn without(shape: Shape<'_>, value: &Value, gone: &FieldSet) -> Value {
    match (shape.atom(Some(value)), value) {
        (Atom::Members(of), Value::Object(members)) if !members.is_empty() => {
            let kept = members.iter().filter_map(|(name, member)| {
                let key = format!("f:{name}");
                let member = kept(of.child(name).0, member, &key, gone)?;
                Some((name.clone(), member))
            });
            some(Value::Object(kept.collect()))
        }
        (Atom::Items(of), Value::Array(items)) if !items.is_empty() => {
            let kept = items.iter().filter_map(|one| match of.key(one) {
                Ok(key) => kept(of.shape(), one, &key, gone),
                Err(_) => Some(one.clone()),
            });
            some(Value::Array(kept.collect()))
        }
        (Atom::Leaf, Value::Object(_) | Value::Array(_)) => Value::Null,
        _ => value.clone(),
    }
}

/// What is left of a field, if it is.
fn kept(shape: Shape<'_>, value: &Value, key: &str, gone: &FieldSet) -> Option<Value> {
    if gone.has(key) {
        return None;
    }
    Some(match gone.below(key) {
        Some(below) => without(shape, value, below),
        None => value.clone(),
    })
}

fn some(value: Value) -> Value {
    let is_bare = match &value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if is_bare { Value::Null } else { value }
}
