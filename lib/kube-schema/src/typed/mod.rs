//! Built-in objects as a Go server would write them after reading them into a struct.
//!
//! Reading checks JSON types with the texts of Go's decoder, reports members that no field takes, and respells what
//! Go respells: empty members vanish or become zero values, plain structs are always there, quantities and times take
//! their canonical form. Reading what was written changes nothing.

mod decode;
mod inspect;
mod scalar;

use serde_json::Value;

pub use self::inspect::{Findings, inspect};
use crate::table::{Kind, Table, TypeId};

/// A value that Go could not read into its struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The text of Go's JSON decoder.
    pub text: String,
    /// The text of its conversion from maps, which reads the result of a strategic merge patch.
    pub conversion: String,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for DecodeError {}

/// An object as Go would write it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object.
    pub value: Value,
    /// Members that were dropped, such as `spec.containers[0].imagePullpolicy`.
    pub unknown: Vec<String>,
}

/// Reads an object of a built-in type.
pub fn decode(table: &Table, of: TypeId, mut value: Value) -> Result<Decoded, DecodeError> {
    let mut reader = decode::Reader::new(table);
    reader.root(of, &mut value)?;
    Ok(Decoded {
        value,
        unknown: reader.unknown,
    })
}

/// An object as it reads after a server stored it in protobuf, which has no difference between an empty list and none.
pub fn stored(table: &Table, of: TypeId, value: &mut Value) {
    let Value::Object(members) = value else { return };
    let of = table.get(of);
    // lists are only in lists and objects
    let holders = members
        .iter_mut()
        .filter(|(_, member)| member.is_array() || member.is_object());
    for (name, member) in holders {
        if let Some(field) = of.field(name) {
            store(table, &field.kind, member);
        }
    }
}

fn store(table: &Table, kind: &Kind, value: &mut Value) {
    match (kind.target(), value) {
        (Kind::List(_), list @ Value::Array(_)) if list.as_array().is_some_and(Vec::is_empty) => {
            *list = Value::Null;
        }
        (Kind::List(item), Value::Array(items)) => {
            for one in items {
                store(table, item, one);
            }
        }
        (Kind::Map(item), Value::Object(members)) => {
            for one in members.values_mut() {
                store(table, item, one);
            }
        }
        (Kind::Struct(of), value) => stored(table, *of, value),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
