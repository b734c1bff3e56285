//! Built-in objects as a Go server would write them after reading them into a struct.
//!
//! Reading checks JSON types with the texts of Go's decoder, reports members that no field takes, and respells what
//! Go respells: empty members vanish or become zero values, plain structs are always there, quantities and times take
//! their canonical form. Reading what was written changes nothing.

mod decode;
mod scalar;

use serde_json::Value;

use crate::table::{Table, TypeId};

/// A value that Go could not read into its struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// What Go's JSON decoder says.
    pub text: String,
    /// What its conversion from maps says, which reads the result of a strategic merge patch.
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
pub fn decode(table: &Table, of: TypeId, value: Value) -> Result<Decoded, DecodeError> {
    let mut reader = decode::Reader::new(table);
    let value = reader.root(of, value)?;
    Ok(Decoded {
        value,
        unknown: reader.unknown,
    })
}

#[cfg(test)]
mod tests;
