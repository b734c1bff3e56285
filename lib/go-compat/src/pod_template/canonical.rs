//! A value as Go would write it after reading it into a typed struct.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::table::{Emit, Field, Kind, Struct};
use crate::quantity::Quantity;

/// Fields as Go would write them, unknown ones unchanged. A value of the wrong type stays as it is: Go could
/// not have stored it.
pub(super) fn of_struct(value: &Value, shape: &Struct) -> Value {
    let empty = Map::new();
    let members = match value {
        Value::Object(members) => members,
        Value::Null => &empty,
        other => return other.clone(),
    };
    let mut out = Map::new();
    for (name, value) in members {
        let written = match shape.field(name) {
            Some(field) => of_field(Some(value), &field.kind, field.emit),
            None => Some(value.clone()),
        };
        if let Some(written) = written {
            out.insert(name.clone(), written);
        }
    }
    // of most structs few fields are given, and of the others few are written
    let others = shape.fields.iter().filter(|field| !vanishes(field));
    for field in others.filter(|field| !members.contains_key(field.name)) {
        if let Some(value) = of_field(None, &field.kind, field.emit) {
            out.insert(field.name.to_owned(), value);
        }
    }
    Value::Object(out)
}

/// Whether a field is left out that is not given.
fn vanishes(field: &Field) -> bool {
    let is_never_empty = matches!(
        field.kind,
        Kind::Struct(_) | Kind::Quantity | Kind::IntOrString | Kind::Time
    );
    field.emit == Emit::UnlessEmpty && !is_never_empty
}

/// `None` if Go leaves the field out.
fn of_field(value: Option<&Value>, kind: &Kind, emit: Emit) -> Option<Value> {
    let value = of_kind(value.unwrap_or(&Value::Null), kind);
    (emit == Emit::Always || !is_empty(&value, kind)).then_some(value)
}

fn of_kind(value: &Value, kind: &Kind) -> Value {
    match (kind, value) {
        (Kind::Bool, Value::Null) => Value::Bool(false),
        (Kind::Int | Kind::IntOrString, Value::Null) => 0.into(),
        (Kind::String, Value::Null) => "".into(),
        (Kind::Quantity, Value::Null) => "0".into(),
        (Kind::Quantity, value) => {
            Quantity::from_json(value).map_or_else(|_| value.clone(), |q| q.canonical().into())
        }
        (Kind::Time, Value::String(text)) => time(text).map_or_else(|| value.clone(), Value::String),
        (Kind::Pointer(inner), value) if !value.is_null() => of_kind(value, inner),
        (Kind::List(inner), Value::Array(items)) => items.iter().map(|item| of_kind(item, inner)).collect(),
        (Kind::Map(inner), Value::Object(members)) => members
            .iter()
            .map(|(key, value)| (key.clone(), of_kind(value, inner)))
            .collect(),
        (Kind::Struct(shape), value) => of_struct(value, shape),
        _ => value.clone(),
    }
}

/// Go's idea of empty, for `omitempty`.
fn is_empty(value: &Value, kind: &Kind) -> bool {
    match kind {
        Kind::Struct(_) | Kind::Quantity | Kind::IntOrString | Kind::Time => false,
        Kind::Pointer(_) | Kind::Any => value.is_null(),
        Kind::Bool | Kind::Int | Kind::String | Kind::List(_) | Kind::Map(_) => match value {
            Value::Null | Value::Bool(false) => true,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(true) => false,
        },
    }
}

/// Whole seconds, in UTC.
fn time(text: &str) -> Option<String> {
    text.parse::<Timestamp>()
        .ok()
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}
