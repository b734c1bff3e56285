//! The part of a value that fits the table of types: what Go keeps of it.

use serde_json::Value;

use super::table::{Kind, Struct};

/// Without the members that the struct does not have.
pub(super) fn of_struct(value: &Value, shape: &Struct) -> Value {
    let Value::Object(members) = value else {
        return value.clone();
    };
    let known = members.iter().filter_map(|(name, value)| {
        let field = shape.field(name)?;
        Some((name.clone(), of_kind(value, &field.kind)))
    });
    Value::Object(known.collect())
}

fn of_kind(value: &Value, kind: &Kind) -> Value {
    match (kind, value) {
        (Kind::Pointer(inner), value) => of_kind(value, inner),
        (Kind::List(inner), Value::Array(items)) => items.iter().map(|item| of_kind(item, inner)).collect(),
        (Kind::Map(inner), Value::Object(members)) => members
            .iter()
            .map(|(key, value)| (key.clone(), of_kind(value, inner)))
            .collect(),
        (Kind::Struct(shape), value) => of_struct(value, shape),
        _ => value.clone(),
    }
}
