//! The walk over a message and its type.

use serde_json::{Map, Value};

use super::scalar;
use super::wire::{Fields, Wire};
use super::{Envelope, WireError};
use crate::table::{Field, Kind, Table, Type, TypeId};

/// Far beyond the depth of any type in the table.
const DEPTH: usize = 64;

/// One walk: where it is.
pub(super) struct Reader<'t> {
    table: &'t Table,
    depth: usize,
}

/// A field, for errors.
#[derive(Clone, Copy)]
pub(super) struct Place {
    within: &'static str,
    field: &'static str,
}

impl Place {
    pub(super) fn wrong_type(self, found: Wire<'_>) -> WireError {
        found.unfit(self.field)
    }

    pub(super) fn value(self, why: &'static str) -> WireError {
        let Self { within, field } = self;
        WireError::Value { within, field, why }
    }
}

impl<'t> Reader<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        Self { table, depth: 0 }
    }

    /// Reads a struct's message into the members read so far: a message may come in parts.
    pub(super) fn read(
        &mut self,
        of: TypeId,
        bytes: &[u8],
        out: &mut Map<String, Value>,
    ) -> Result<(), WireError> {
        self.part(self.table.get(of), &[], bytes, out)
    }

    /// Reads a message of a struct, or of a struct that is embedded in it below the numbers `outer`.
    fn part(
        &mut self,
        of: &Type,
        outer: &[u32],
        bytes: &[u8],
        out: &mut Map<String, Value>,
    ) -> Result<(), WireError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(WireError::TooDeep);
        }
        let mut fields = Fields::new(bytes);
        while let Some((number, wire)) = fields.next()? {
            let below = |field: &&Field| {
                let rest = field.numbers.strip_prefix(outer);
                rest.is_some_and(|rest| rest.first() == Some(&number))
            };
            let Some(field) = of.fields.iter().find(below) else {
                continue;
            };
            let place = Place {
                within: of.go_name(),
                field: field.name,
            };
            if field.numbers.len() > outer.len() + 1 {
                let inner: Vec<u32> = outer.iter().copied().chain([number]).collect();
                self.part(of, &inner, message(wire, place)?, out)?;
            } else {
                let slot = out.entry(field.name).or_insert(Value::Null);
                self.value(&field.kind, wire, slot, place)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn value(
        &mut self,
        kind: &Kind,
        wire: Wire<'_>,
        slot: &mut Value,
        place: Place,
    ) -> Result<(), WireError> {
        match kind {
            Kind::Pointer(inner) => self.value(inner, wire, slot, place)?,
            Kind::Struct(id) => {
                let bytes = message(wire, place)?;
                self.read(*id, bytes, object(slot))?;
            }
            Kind::List(item) => self.item(item, wire, slot, place)?,
            Kind::Map(item) => {
                let (key, value) = self.entry(item, message(wire, place)?, place)?;
                object(slot).insert(key, value);
            }
            Kind::Any => *slot = Self::embedded(message(wire, place)?, place)?,
            scalar => *slot = scalar::read(scalar, wire, place)?,
        }
        Ok(())
    }

    fn item(&mut self, kind: &Kind, wire: Wire<'_>, slot: &mut Value, place: Place) -> Result<(), WireError> {
        if !slot.is_array() {
            *slot = Value::Array(Vec::new());
        }
        let Value::Array(list) = slot else {
            return Ok(());
        };
        if let (Kind::Int(_) | Kind::Bool, Wire::Bytes(packed)) = (kind.target(), wire) {
            let mut rest = Fields::new(packed);
            while !rest.is_empty() {
                list.push(scalar::read(kind.target(), Wire::Varint(rest.varint()?), place)?);
            }
            return Ok(());
        }
        let mut item = Value::Null;
        self.value(kind, wire, &mut item, place)?;
        list.push(item);
        Ok(())
    }

    /// An entry of a map: a message of a key and a value.
    fn entry(&mut self, kind: &Kind, bytes: &[u8], place: Place) -> Result<(String, Value), WireError> {
        let mut key = String::new();
        let mut value = match kind {
            Kind::String(_) | Kind::Bytes => "".into(),
            Kind::Quantity => "0".into(),
            Kind::Struct(_) => Value::Object(Map::new()),
            _ => Value::Null,
        };
        let mut fields = Fields::new(bytes);
        while let Some((number, wire)) = fields.next()? {
            match (number, wire) {
                (1, wire) => key = String::from_utf8_lossy(message(wire, place)?).into_owned(),
                // a list cannot be a map's value: it has a message of its own
                (2, wire) => match kind {
                    Kind::List(item) => self.wrapped(item, message(wire, place)?, &mut value, place)?,
                    kind => self.value(kind, wire, &mut value, place)?,
                },
                _ => {}
            }
        }
        Ok((key, value))
    }

    fn wrapped(
        &mut self,
        item: &Kind,
        bytes: &[u8],
        slot: &mut Value,
        place: Place,
    ) -> Result<(), WireError> {
        let mut fields = Fields::new(bytes);
        while let Some((number, wire)) = fields.next()? {
            if number == 1 {
                self.item(item, wire, slot, place)?;
            }
        }
        Ok(())
    }

    /// JSON, or an object in an envelope, in a message of one field.
    fn embedded(bytes: &[u8], place: Place) -> Result<Value, WireError> {
        let mut fields = Fields::new(bytes);
        let mut value = Value::Null;
        while let Some((number, wire)) = fields.next()? {
            if number != 1 {
                continue;
            }
            let raw = message(wire, place)?;
            if Envelope::open(raw).is_ok() {
                return Err(place.value("an embedded object in binary encoding is not understood"));
            }
            if !raw.is_empty() {
                value = serde_json::from_slice(raw).map_err(|_| place.value("not JSON"))?;
            }
        }
        Ok(value)
    }
}

fn message(wire: Wire<'_>, place: Place) -> Result<&[u8], WireError> {
    match wire {
        Wire::Bytes(bytes) => Ok(bytes),
        wire => Err(place.wrong_type(wire)),
    }
}

/// The members of a value that is to be an object.
fn object(slot: &mut Value) -> &mut Map<String, Value> {
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(members) => members,
        _ => unreachable!("just made an object"),
    }
}
