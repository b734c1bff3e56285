//! The walk over a value and its type.

use serde_json::{Map, Value, json};

use super::{DecodeError, scalar};
use crate::table::{Field, Kind, Omit, Table, TypeId};

/// One walk: where it is, and what it dropped.
pub(super) struct Reader<'t> {
    table: &'t Table,
    /// The way down, with list indexes, for dropped members.
    path: Vec<String>,
    /// The innermost struct, for errors.
    within: &'static str,
    pub(super) unknown: Vec<String>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        Self {
            table,
            path: Vec::new(),
            within: "",
            unknown: Vec::new(),
        }
    }

    pub(super) fn root(&mut self, of: TypeId, value: Value) -> Result<Value, DecodeError> {
        self.read(&Kind::Struct(of), value)
    }

    fn read(&mut self, kind: &Kind, value: Value) -> Result<Value, DecodeError> {
        match (kind, value) {
            (Kind::Pointer(inner), value) => self.read(inner, value),
            (Kind::Any, value) => Ok(value),
            (kind, Value::Null) => self.zero(kind),
            (Kind::Struct(id), Value::Object(members)) => self.read_struct(*id, members),
            (Kind::List(item), Value::Array(values)) => {
                let mut out = Vec::with_capacity(values.len());
                for (index, value) in values.into_iter().enumerate() {
                    self.path.push(format!("[{index}]"));
                    out.push(self.read(item, value)?);
                    self.path.pop();
                }
                Ok(Value::Array(out))
            }
            (Kind::Map(item), Value::Object(members)) => {
                let mut out = Map::new();
                for (name, value) in members {
                    self.path.push(format!("[{name}]"));
                    let value = self.read(item, value)?;
                    self.path.pop();
                    out.insert(name, value);
                }
                Ok(Value::Object(out))
            }
            (kind, value) => {
                let conversion = conversion(kind, &value);
                scalar::read(kind, value).map_err(|mismatch| {
                    let text = match mismatch {
                        scalar::Mismatch::Json(found) => self.mismatch(kind, found),
                        scalar::Mismatch::Text(text) => text,
                    };
                    DecodeError { text, conversion }
                })
            }
        }
    }

    fn read_struct(&mut self, id: TypeId, mut members: Map<String, Value>) -> Result<Value, DecodeError> {
        let table = self.table;
        let of = table.get(id);
        let outer = std::mem::replace(&mut self.within, of.name);
        let mut out = Map::new();
        for field in &of.fields {
            let value = members.remove(field.name).unwrap_or(Value::Null);
            self.path.push(field.name.to_owned());
            if let Some(value) = self.read_field(field, value)? {
                out.insert(field.name.to_owned(), value);
            }
            self.path.pop();
        }
        for name in members.keys() {
            let path = self.joined(true);
            let dot = if path.is_empty() { "" } else { "." };
            self.unknown.push(format!("{path}{dot}{name}"));
        }
        self.within = outer;
        Ok(Value::Object(out))
    }

    /// The value to write, unless Go leaves it out.
    fn read_field(&mut self, field: &Field, value: Value) -> Result<Option<Value>, DecodeError> {
        let pointer = matches!(field.kind, Kind::Pointer(_));
        if value.is_null() && (pointer || matches!(field.kind, Kind::List(_) | Kind::Map(_) | Kind::Bytes)) {
            return Ok((field.omit == Omit::Never).then_some(Value::Null));
        }
        let value = self.read(&field.kind, value)?;
        let empty = match field.omit {
            Omit::Never => false,
            _ if pointer => false,
            Omit::Empty => is_empty(&field.kind, &value),
            Omit::Zero => is_empty(&field.kind, &value) || value.is_null() || value == json!({}),
        };
        Ok((!empty).then_some(value))
    }

    /// What Go writes for a member that was not given.
    fn zero(&mut self, kind: &Kind) -> Result<Value, DecodeError> {
        Ok(match kind {
            Kind::String(_) => "".into(),
            Kind::Bool => false.into(),
            Kind::Int(_) | Kind::Float | Kind::IntOrString => 0.into(),
            Kind::Duration => "0s".into(),
            Kind::Quantity => "0".into(),
            Kind::Struct(id) => self.read_struct(*id, Map::new())?,
            Kind::Bytes
            | Kind::Time
            | Kind::MicroTime
            | Kind::Any
            | Kind::Pointer(_)
            | Kind::List(_)
            | Kind::Map(_) => Value::Null,
        })
    }

    fn mismatch(&self, kind: &Kind, found: &str) -> String {
        let of = match kind {
            // only text is read by the type itself
            Kind::IntOrString => "int32".into(),
            kind => kind.go_name(self.table),
        };
        if self.path.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {of}");
        }
        let within = self.within.rsplit_once('.').map_or("", |(_, name)| name);
        let path = self.joined(false);
        format!("json: cannot unmarshal {found} into Go struct field {within}.{path} of type {of}")
    }

    /// Go's decoder leaves indexes out of its errors, but not out of its warnings.
    fn joined(&self, indexes: bool) -> String {
        let mut out = String::new();
        for part in &self.path {
            if !part.starts_with('[') {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(part);
            } else if indexes {
                out.push_str(part);
            }
        }
        out
    }
}

fn conversion(kind: &Kind, found: &Value) -> String {
    let found = match found {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
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
