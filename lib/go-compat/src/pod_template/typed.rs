//! JSON text in the order of Go's struct fields rather than of sorted keys.

use serde_json::{Map, Value};

use super::table::{Kind, Struct};
use crate::json::{to_go_json, write_string};

/// Writes a canonical value.
pub(super) fn write_struct(out: &mut String, value: &Value, shape: &Struct) {
    let Value::Object(members) = value else {
        out.push_str(&to_go_json(value));
        return;
    };
    let known = shape
        .fields
        .iter()
        .filter_map(|field| Some((field.name, members.get(field.name)?, &field.kind)));
    let unknown = members.iter().filter(|(name, _)| shape.field(name).is_none());
    write_members(
        out,
        known.chain(unknown.map(|(name, value)| (name.as_str(), value, &Kind::Any))),
    );
}

fn write_members<'a>(out: &mut String, members: impl Iterator<Item = (&'a str, &'a Value, &'a Kind)>) {
    out.push('{');
    for (index, (name, value, kind)) in members.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, name);
        out.push(':');
        write_kind(out, value, kind);
    }
    out.push('}');
}

fn write_kind(out: &mut String, value: &Value, kind: &Kind) {
    match (kind, value) {
        (Kind::Pointer(inner), value) if !value.is_null() => write_kind(out, value, inner),
        (Kind::Struct(shape), value) => write_struct(out, value, shape),
        (Kind::List(inner), Value::Array(items)) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_kind(out, item, inner);
            }
            out.push(']');
        }
        (Kind::Map(inner), Value::Object(members)) => write_map(out, members, inner),
        _ => out.push_str(&to_go_json(value)),
    }
}

fn write_map(out: &mut String, members: &Map<String, Value>, inner: &Kind) {
    let mut sorted: Vec<_> = members
        .iter()
        .map(|(key, value)| (key.as_str(), value, inner))
        .collect();
    sorted.sort_unstable_by_key(|(key, ..)| *key);
    write_members(out, sorted.into_iter());
}
