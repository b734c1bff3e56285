//! Values that are no messages of the table.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use go_compat::duration;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::WireError;
use super::message::Place;
use super::wire::{Fields, Wire};
use crate::table::Kind;

pub(super) fn read(kind: &Kind, wire: Wire<'_>, place: Place) -> Result<Value, WireError> {
    Ok(match (kind, wire) {
        (Kind::Bool, Wire::Varint(value)) => (value != 0).into(),
        // Go keeps the low 32 bits
        (Kind::Int(go), Wire::Varint(value)) if go.contains("64") => (value as i64).into(),
        (Kind::Int(_), Wire::Varint(value)) => (value as i32).into(),
        (Kind::Float, Wire::Fixed64(bits)) => {
            serde_json::Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
        }
        (Kind::String(_), Wire::Bytes(bytes)) => text(bytes).into(),
        (Kind::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Kind::Quantity, Wire::Bytes(bytes)) => quantity(bytes, place)?,
        (Kind::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes, place)?,
        (Kind::Time, Wire::Bytes(bytes)) => time(bytes, 0, place)?,
        (Kind::MicroTime, Wire::Bytes(bytes)) => time(bytes, 6, place)?,
        (Kind::Duration, Wire::Bytes(bytes)) => {
            let [nanoseconds] = numbers(bytes, place)?;
            duration::format(SignedDuration::from_nanos(nanoseconds)).into()
        }
        (_, wire) => return Err(place.wrong_type(wire)),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn quantity(bytes: &[u8], place: Place) -> Result<Value, WireError> {
    let mut fields = Fields::new(bytes);
    let mut out = String::new();
    while let Some((number, wire)) = fields.next()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => out = text(bytes),
            (1, wire) => return Err(place.wrong_type(wire)),
            _ => {}
        }
    }
    let out = if out.is_empty() { "0".into() } else { out.into() };
    match go_compat::quantity::Quantity::from_json(&out) {
        Ok(_) => Ok(out),
        Err(_) => Err(place.value("not a quantity")),
    }
}

fn int_or_string(bytes: &[u8], place: Place) -> Result<Value, WireError> {
    let mut fields = Fields::new(bytes);
    let (mut kind, mut int, mut string) = (0_i64, 0_i32, String::new());
    while let Some((number, wire)) = fields.next()? {
        match (number, wire) {
            (1, Wire::Varint(value)) => kind = value as i64,
            (2, Wire::Varint(value)) => int = value as i32,
            (3, Wire::Bytes(bytes)) => string = text(bytes),
            (1..=3, wire) => return Err(place.wrong_type(wire)),
            _ => {}
        }
    }
    match kind {
        0 => Ok(int.into()),
        1 => Ok(string.into()),
        _ => Err(place.value("impossible IntOrString.Type")),
    }
}

/// Seconds and nanoseconds since 1970. No bytes at all are no time.
fn time(bytes: &[u8], digits: usize, place: Place) -> Result<Value, WireError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let [seconds, nanoseconds] = numbers(bytes, place)?;
    let nanoseconds = if digits == 0 {
        0
    } else {
        nanoseconds as i32 / 1000 * 1000
    };
    let time = Timestamp::new(seconds, nanoseconds).map_err(|_| place.value("year outside of range"))?;
    Ok(format!("{time:.digits$}").into())
}

/// The first fields of a message of numbers.
fn numbers<const N: usize>(bytes: &[u8], place: Place) -> Result<[i64; N], WireError> {
    let mut out = [0; N];
    let mut fields = Fields::new(bytes);
    while let Some((number, wire)) = fields.next()? {
        let slot = usize::try_from(number)
            .ok()
            .and_then(|number| out.get_mut(number - 1));
        match (slot, wire) {
            (Some(slot), Wire::Varint(value)) => *slot = value as i64,
            (Some(_), wire) => return Err(place.wrong_type(wire)),
            (None, _) => {}
        }
    }
    Ok(out)
}
