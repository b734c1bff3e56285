//! Values without members.

use go_compat::quantity::Quantity;
use jiff::Timestamp;
use serde_json::Value;

use crate::table::Kind;

/// Why a value was not read.
pub(super) enum Mismatch {
    /// Of the wrong JSON type, which is named as Go names it.
    Json(&'static str),
    /// Of the right JSON type but not well formed; the whole text.
    Text(String),
}

pub(super) fn read(kind: &Kind, value: Value) -> Result<Value, Mismatch> {
    match (kind, &value) {
        (Kind::Int(go), Value::Number(number)) => integer(go, number),
        (Kind::String(_) | Kind::Duration | Kind::IntOrString, Value::String(_))
        | (Kind::Bool, Value::Bool(_))
        | (Kind::Float, Value::Number(_)) => Ok(value),
        (Kind::IntOrString, Value::Number(number)) => integer("int32", number),
        (Kind::Bytes, Value::String(text)) => bytes(text).map(|()| value),
        (Kind::Time, Value::String(text)) => time(text, 0),
        (Kind::MicroTime, Value::String(text)) => time(text, 6),
        (Kind::Quantity, Value::String(_) | Value::Number(_)) => match Quantity::from_json(&value) {
            Ok(quantity) => Ok(quantity.canonical().into()),
            Err(_) => Err(Mismatch::Text(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                    .into(),
            )),
        },
        _ => Err(Mismatch::Json(json_type(&value))),
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn integer(go: &str, number: &serde_json::Number) -> Result<Value, Mismatch> {
    let whole = number.as_i64().or_else(|| {
        number
            .as_f64()
            .filter(|f| f.fract() == 0.0 && f.abs() < 9e15)
            .map(|f| f as i64)
    });
    let fits = whole.filter(|whole| go.contains("int64") || i32::try_from(*whole).is_ok());
    fits.map(Value::from).ok_or(Mismatch::Json("number"))
}

fn bytes(text: &str) -> Result<(), Mismatch> {
    let bad = text
        .bytes()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')));
    match bad {
        Some(at) => Err(Mismatch::Text(format!("illegal base64 data at input byte {at}"))),
        None if !text.len().is_multiple_of(4) => Err(Mismatch::Text(format!(
            "illegal base64 data at input byte {}",
            text.len() / 4 * 4
        ))),
        None => Ok(()),
    }
}

/// Go reads any offset and writes UTC, with as many digits of the second as the type has.
fn time(text: &str, digits: usize) -> Result<Value, Mismatch> {
    match text.parse::<Timestamp>() {
        Ok(time) => Ok(format!("{time:.digits$}").into()),
        Err(_) => Err(Mismatch::Text(format!(
            "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{text}\" as \"2006\""
        ))),
    }
}
