//! Bodies of writes.

use serde_json::Value;

use crate::api::Call;
use crate::object::{self, FieldValidation};
use crate::registry::Schema;
use crate::status::Failure;

const BODIES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
];

/// Reads the object of a body and gives it its kind's shape and defaults.
pub(super) fn object(call: &mut Call<'_>) -> Result<Value, Failure> {
    if !matches!(call.request.media_type(), "" | "application/json") {
        return Err(Failure::unsupported_media_type(BODIES));
    }
    let api_version = call.api_version();
    let value = object::parse(
        &call.request.body,
        &call.resource.kind,
        &api_version,
        &call.version,
    )?;
    shape(call, value, |kind, version, why, _| {
        Failure::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    })
}

/// Gives an object its kind's shape and defaults, and minds members that are unknown.
pub(super) fn shape(
    call: &mut Call<'_>,
    value: Value,
    refuse: impl Fn(&str, &str, &str, &str) -> Failure,
) -> Result<Value, Failure> {
    let refuse =
        |why: &str, conversion: &str| refuse(&call.resource.kind, &call.version.name, why, conversion);
    let mut read =
        object::shape(value, &call.version).map_err(|error| refuse(&error.text, &error.conversion))?;
    let unknown: Vec<String> = read
        .unknown
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .collect();
    match field_validation(call) {
        FieldValidation::Strict if !unknown.is_empty() => {
            let why = format!("strict decoding error: {}", unknown.join(", "));
            return Err(refuse(&why, &why));
        }
        FieldValidation::Warn => call.warnings.extend(unknown),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    default(call, &mut read.value)?;
    Ok(read.value)
}

/// Defaults, and the shape again: defaults may have filled in what has members of its own.
pub(super) fn default(call: &Call<'_>, value: &mut Value) -> Result<(), Failure> {
    (call.resource.traits.default)(value);
    if let Schema::Typed(_) = call.version.schema {
        let shaped = object::shape(value.take(), &call.version);
        *value = shaped.map_err(|error| Failure::internal(&error.text))?.value;
    }
    Ok(())
}

fn field_validation(call: &Call<'_>) -> FieldValidation {
    match call.query.text("fieldValidation") {
        "Strict" => FieldValidation::Strict,
        "Ignore" => FieldValidation::Ignore,
        _ => FieldValidation::Warn,
    }
}

/// An object that a webhook changed, in its kind's shape again.
pub(crate) fn reshape(call: &Call<'_>, value: Value) -> Result<Value, Failure> {
    if value.is_null() {
        return Ok(value);
    }
    let read = object::shape(value, &call.version).map_err(|error| Failure::internal(&error.text))?;
    let mut value = read.value;
    default(call, &mut value)?;
    Ok(value)
}

/// What Go says of text that is not JSON, for the commonest faults.
pub(crate) fn go_error(text: &[u8]) -> String {
    let after = |at: usize| {
        text.get(at..)
            .unwrap_or_default()
            .iter()
            .find(|b| !b.is_ascii_whitespace())
    };
    let start = text
        .iter()
        .position(|b| !b.is_ascii_whitespace())
        .unwrap_or_default();
    let (found, place) = match (text.get(start), after(start + 1)) {
        (None, _) | (Some(b'{' | b'['), None) => return "unexpected end of JSON input".into(),
        (Some(b'{'), Some(next)) if *next != b'"' => (*next, "looking for beginning of object key string"),
        (Some(first), _) => (*first, "looking for beginning of value"),
    };
    let shown = match found {
        b' '..=b'~' => char::from(found).to_string(),
        other => format!("\\u{other:04x}"),
    };
    format!("invalid character '{shown}' {place}")
}
