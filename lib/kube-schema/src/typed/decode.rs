//! The walk over a value and its type.

use serde_json::{Map, Value};

use super::{DecodeError, scalar};
use crate::table::{Field, Kind, Omit, Table, TypeId};

/// One walk, which changes the value in place: most of what is read is in its shape already.
pub(super) struct Reader<'t> {
    table: &'t Table,
    /// The innermost struct, for errors.
    within: &'static str,
    /// What was dropped.
    pub(super) unknown: Vec<String>,
}

/// A place: the way down to it, from its end.
#[derive(Clone, Copy)]
struct Place<'p> {
    above: Option<&'p Place<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Member(&'static str),
    Item(usize),
    Key(&'p str),
}

/// Whether Go writes a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Written,
    Omitted,
}

impl<'p> Place<'p> {
    const ROOT: Self = Self {
        above: None,
        step: Step::Root,
    };

    fn then(&'p self, step: Step<'p>) -> Self {
        Self {
            above: Some(self),
            step,
        }
    }

    /// Go's decoder leaves indexes out of its errors, but not out of its warnings.
    fn text(&self, indexes: bool) -> String {
        let mut out = self.above.map_or_else(String::new, |above| above.text(indexes));
        match self.step {
            Step::Member(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Item(index) if indexes => out = format!("{out}[{index}]"),
            Step::Key(name) if indexes => out = format!("{out}[{name}]"),
            Step::Root | Step::Item(_) | Step::Key(_) => {}
        }
        out
    }
}

impl<'t> Reader<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        Self {
            table,
            within: "",
            unknown: Vec::new(),
        }
    }

    pub(super) fn root(&mut self, of: TypeId, value: &mut Value) -> Result<(), DecodeError> {
        self.read(&Kind::Struct(of), value, &Place::ROOT)
    }

    fn read(&mut self, kind: &Kind, value: &mut Value, at: &Place<'_>) -> Result<(), DecodeError> {
        match (kind, &mut *value) {
            (Kind::Pointer(inner), _) => return self.read(inner, value, at),
            (Kind::Any, _) => {}
            (kind, Value::Null) => *value = self.zero(kind, at)?,
            (Kind::Struct(id), Value::Object(members)) => self.read_struct(*id, members, at)?,
            (Kind::List(item), Value::Array(values)) => {
                for (index, value) in values.iter_mut().enumerate() {
                    self.read(item, value, &at.then(Step::Item(index)))?;
                }
            }
            (Kind::Map(item), Value::Object(members)) => {
                for (name, value) in members {
                    self.read(item, value, &at.then(Step::Key(name)))?;
                }
            }
            (kind, scalar) => {
                let found = found(scalar);
                let read = scalar::read(kind, scalar.take());
                *value = read.map_err(|mismatch| DecodeError {
                    conversion: conversion(kind, found),
                    text: match mismatch {
                        scalar::Mismatch::Json(found) => self.mismatch(kind, found, at),
                        scalar::Mismatch::Text(text) => text,
                    },
                })?;
            }
        }
        Ok(())
    }

    fn read_struct(
        &mut self,
        id: TypeId,
        members: &mut Map<String, Value>,
        at: &Place<'_>,
    ) -> Result<(), DecodeError> {
        let table = self.table;
        let of = table.get(id);
        let outer = std::mem::replace(&mut self.within, of.name);
        let mut written = 0;
        for field in &of.fields {
            let place = at.then(Step::Member(field.name));
            let fate = match members.get_mut(field.name) {
                None if vanishes(field) => continue,
                None => {
                    let mut value = Value::Null;
                    let fate = self.read_field(field, &mut value, &place)?;
                    if fate == Fate::Written {
                        members.insert(field.name.to_owned(), value);
                    }
                    fate
                }
                Some(Value::Null) if vanishes(field) => Fate::Omitted,
                Some(value) => self.read_field(field, value, &place)?,
            };
            match fate {
                Fate::Written => written += 1,
                Fate::Omitted => {
                    members.remove(field.name);
                }
            }
        }
        if members.len() > written {
            let path = at.text(true);
            let dot = if path.is_empty() { "" } else { "." };
            members.retain(|name, _| {
                let known = of.field(name).is_some();
                if !known {
                    self.unknown.push(format!("{path}{dot}{name}"));
                }
                known
            });
        }
        self.within = outer;
        Ok(())
    }

    fn read_field(&mut self, field: &Field, value: &mut Value, at: &Place<'_>) -> Result<Fate, DecodeError> {
        let pointer = matches!(field.kind, Kind::Pointer(_));
        let fate = |omitted: bool| if omitted { Fate::Omitted } else { Fate::Written };
        if value.is_null() && (pointer || matches!(field.kind, Kind::List(_) | Kind::Map(_) | Kind::Bytes)) {
            return Ok(fate(field.omit != Omit::Never));
        }
        self.read(&field.kind, value, at)?;
        Ok(fate(match field.omit {
            Omit::Never => false,
            _ if pointer => false,
            Omit::Empty => is_empty(&field.kind, value),
            Omit::Zero => {
                is_empty(&field.kind, value)
                    || value.is_null()
                    || value.as_object().is_some_and(Map::is_empty)
            }
        }))
    }

    /// What Go writes for a member that was not given.
    fn zero(&mut self, kind: &Kind, at: &Place<'_>) -> Result<Value, DecodeError> {
        Ok(match kind {
            Kind::String(_) => "".into(),
            Kind::Bool => false.into(),
            Kind::Int(_) | Kind::Float | Kind::IntOrString => 0.into(),
            Kind::Duration => "0s".into(),
            Kind::Quantity => "0".into(),
            Kind::Struct(id) => {
                let mut members = Map::new();
                self.read_struct(*id, &mut members, at)?;
                members.into()
            }
            Kind::Bytes
            | Kind::Time
            | Kind::MicroTime
            | Kind::Any
            | Kind::Pointer(_)
            | Kind::List(_)
            | Kind::Map(_) => Value::Null,
        })
    }

    fn mismatch(&self, kind: &Kind, found: &str, at: &Place<'_>) -> String {
        let of = match kind {
            // only text is read by the type itself
            Kind::IntOrString => "int32".into(),
            kind => kind.go_name(self.table),
        };
        if at.above.is_none() {
            return format!("json: cannot unmarshal {found} into Go value of type {of}");
        }
        let within = self.within.rsplit_once('.').map_or("", |(_, name)| name);
        let path = at.text(false);
        format!("json: cannot unmarshal {found} into Go struct field {within}.{path} of type {of}")
    }
}

/// Whether a member is not written that is not given, or null. Of most structs most members are like that.
fn vanishes(field: &Field) -> bool {
    let has_empty = match field.kind {
        Kind::String(_)
        | Kind::Bool
        | Kind::Int(_)
        | Kind::Float
        | Kind::Bytes
        | Kind::Pointer(_)
        | Kind::List(_)
        | Kind::Map(_) => true,
        // their zero is written, or has members
        Kind::Time
        | Kind::MicroTime
        | Kind::Duration
        | Kind::Quantity
        | Kind::IntOrString
        | Kind::Any
        | Kind::Struct(_) => false,
    };
    has_empty && field.omit != Omit::Never
}

/// What Go's conversion from maps calls a value.
fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

fn conversion(kind: &Kind, found: &str) -> String {
    match kind {
        Kind::List(_) | Kind::Bytes => format!("cannot restore slice from {found}"),
        Kind::Map(_) => format!("cannot restore map from {found}"),
        Kind::Struct(_) => format!("cannot restore struct from: {found}"),
        Kind::String(_) => format!("cannot convert {found} to string"),
        Kind::IntOrString => format!(
            "json: cannot unmarshal {} into Go value of type int32",
            match found {
                "map" => "object",
                "slice" => "array",
                other => other,
            }
        ),
        Kind::Int(go) => format!("unrecognized type: {go}"),
        _ => format!("unrecognized type: {found}"),
    }
}

/// Whether Go's `omitempty` applies: structs are never empty.
fn is_empty(kind: &Kind, value: &Value) -> bool {
    match kind {
        Kind::String(_) | Kind::Bytes => value.as_str().is_none_or(str::is_empty),
        Kind::Bool => value == &Value::Bool(false),
        Kind::Int(_) | Kind::Float => value.as_f64() == Some(0.0),
        Kind::List(_) => value.as_array().is_none_or(Vec::is_empty),
        Kind::Map(_) => value.as_object().is_none_or(Map::is_empty),
        Kind::Time
        | Kind::MicroTime
        | Kind::Duration
        | Kind::Quantity
        | Kind::IntOrString
        | Kind::Any
        | Kind::Pointer(_)
        | Kind::Struct(_) => false,
    }
}
