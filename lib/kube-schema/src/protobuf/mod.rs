//! Objects in Kubernetes' binary encoding, read to the JSON that Go would write of them.
//!
//! A body is an [`Envelope`]: four bytes that say so, and a message with version, kind and the object's own bytes. The
//! [`table`](crate::table) has the number of every field, so that one walk reads every built-in type. Fields that
//! are not in the table are skipped, as Go skips them. What does not decode is an error; nothing in the bytes may
//! panic, recurse without bound or allocate more than a small multiple of their length.
//!
//! The result has the members that were on the wire; [`typed::decode`](crate::typed::decode) gives it the others.
//! Schemas inside of custom resource definitions are not read: see [`is_supported`].

mod error;
mod message;
mod scalar;
mod wire;

use serde_json::{Map, Value};

pub use self::error::WireError;
use self::wire::{Fields, Wire};
use crate::table::{Table, TypeId};

/// Starts every body.
const MAGIC: &[u8] = b"k8s\0";

/// A body in Kubernetes' binary encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Group and version, or empty.
    pub api_version: String,
    /// The kind, or empty.
    pub kind: String,
    /// The object's own message.
    pub object: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens a body.
    pub fn open(body: &'a [u8]) -> Result<Self, WireError> {
        if body.is_empty() {
            return Err(WireError::Empty);
        }
        let message = body.strip_prefix(MAGIC).ok_or(WireError::NoEnvelope)?;
        let mut out = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, wire)) = fields.next()? {
            match (number, wire) {
                (1, Wire::Bytes(bytes)) => out.read_type(bytes)?,
                (2, Wire::Bytes(bytes)) => out.object = bytes,
                (1, wire) => return Err(wire.unfit("typeMeta")),
                (2, wire) => return Err(wire.unfit("raw")),
                _ => {}
            }
        }
        Ok(out)
    }

    fn read_type(&mut self, message: &[u8]) -> Result<(), WireError> {
        let mut fields = Fields::new(message);
        while let Some((number, wire)) = fields.next()? {
            match (number, wire) {
                (1, Wire::Bytes(bytes)) => self.api_version = String::from_utf8_lossy(bytes).into_owned(),
                (2, Wire::Bytes(bytes)) => self.kind = String::from_utf8_lossy(bytes).into_owned(),
                (1, wire) => return Err(wire.unfit("apiVersion")),
                (2, wire) => return Err(wire.unfit("kind")),
                _ => {}
            }
        }
        Ok(())
    }

    /// The object as JSON, with version and kind.
    pub fn decode(&self, table: &Table, of: TypeId) -> Result<Value, WireError> {
        let mut members = Map::new();
        members.insert("apiVersion".into(), self.api_version.as_str().into());
        members.insert("kind".into(), self.kind.as_str().into());
        message::Reader::new(table).read(of, self.object, &mut members)?;
        Ok(Value::Object(members))
    }
}

/// Whether objects of the type can be read: not if they hold schemas, whose encoding is not in the table.
pub fn is_supported(table: &Table, of: TypeId) -> bool {
    !table.get(of).name.starts_with("apiextensions/")
}

#[cfg(test)]
mod tests;
