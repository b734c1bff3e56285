//! Bodies of writes.

use kube_schema::protobuf::{self, Envelope};
use kube_schema::table::{Table, TypeId};
use kube_schema::typed::DecodeError;
use serde_json::Value;

use super::touched::{self, Touched};
use crate::api::Call;
use crate::json_error::go_error;
use crate::managed;
use crate::object::{self, FieldValidation, Read};
use crate::registry::{Defaults, Schema};
use crate::status::Failure;

const BODIES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Reads the object of a body and gives it its kind's shape and defaults.
pub(super) fn object(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (kind, api_version) = (&call.resource.kind, call.api_version());
    let value = match (call.request.media_type(), &call.version.schema) {
        ("" | "application/json", _) => object::parse(&call.request.body, kind, &api_version, &call.version)?,
        (PROTOBUF, Schema::Typed(of)) if protobuf::is_supported(Table::builtin(), *of) => {
            let envelope = open(call, kind)?;
            object::check_type(
                [&envelope.api_version, &envelope.kind],
                "",
                kind,
                &api_version,
                &call.version,
            )?;
            let mut value = decode(&envelope, *of, kind)?;
            if let Value::Object(members) = &mut value {
                members.insert("apiVersion".into(), api_version.into());
                members.insert("kind".into(), kind.as_ref().into());
            }
            value
        }
        _ => return Err(Failure::unsupported_media_type(BODIES)),
    };
    shape(call, value, |call, why, _| {
        let (kind, version) = (&call.resource.kind, &call.version.name);
        Failure::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    })
}

/// Reads a body that is not the resource's own kind but what a subresource takes. `of` is a type of the table.
pub(super) fn other(call: &Call<'_>, of: &str) -> Result<Value, Failure> {
    let body = &call.request.body;
    let kind = of.rsplit('.').next().unwrap_or_default();
    match (call.request.media_type(), Table::builtin().find(of)) {
        ("" | "application/json", _) => serde_json::from_slice(body).map_err(|_| {
            let why = go_error(body);
            object::unrecognized(
                body,
                kind,
                &format!("couldn't get version/kind; json parse error: {why}"),
            )
        }),
        (PROTOBUF, Some(of)) => decode(&open(call, kind)?, of, kind),
        _ => Err(Failure::unsupported_media_type(BODIES)),
    }
}

/// Reads `DeleteOptions`; without a body they are `null`. What is wrong with them is no fault of the client's, says a
/// server.
pub(super) fn delete_options(call: &Call<'_>) -> Result<Value, Failure> {
    let body = &call.request.body;
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let table = Table::builtin();
    let options: Value = match (call.request.media_type(), table.find("meta/v1.DeleteOptions")) {
        ("" | "application/json", _) => serde_json::from_slice(body).map_err(|_| {
            let why = go_error(body);
            Failure::unknown(&format!("couldn't get version/kind; json parse error: {why}"))
        })?,
        (PROTOBUF, Some(of)) => {
            let envelope = Envelope::open(body);
            let decoded = envelope.and_then(|envelope| envelope.decode(table, of));
            decoded.map_err(|error| Failure::unknown(&error.to_string()))?
        }
        _ => return Err(Failure::unsupported_media_type(BODIES)),
    };
    let text = |name: &str| options.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("kind") {
        "" | "DeleteOptions" => Ok(options),
        kind => Err(Failure::unknown(&object::unregistered(kind, text("apiVersion")))),
    }
}

fn open<'a>(call: &Call<'a>, kind: &str) -> Result<Envelope<'a>, Failure> {
    let body = &call.request.body;
    Envelope::open(body).map_err(|error| object::unrecognized(body, kind, &error.to_string()))
}

/// An object that came in protobuf, with the kind that it has.
fn decode(envelope: &Envelope<'_>, of: TypeId, kind: &str) -> Result<Value, Failure> {
    envelope.decode(Table::builtin(), of).map_err(|error| {
        let short = envelope.api_version.rsplit('/').next().unwrap_or_default();
        let why = format!(
            "{} in version {short:?} cannot be handled as a {kind}: {error}",
            envelope.kind
        );
        Failure::bad_request(why)
    })
}

/// Gives an object its kind's shape and defaults, and minds members that are unknown.
pub(super) fn shape(
    call: &mut Call<'_>,
    mut value: Value,
    refuse: impl Fn(&Call<'_>, &str, &str) -> Failure,
) -> Result<Value, Failure> {
    managed::keep_reset(&mut value);
    let read = shape_touched(call, value, &call.touched);
    let mut read = read.map_err(|error| refuse(call, &error.text, &error.conversion))?;
    let unknown: Vec<String> = read
        .unknown
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .collect();
    match field_validation(call) {
        FieldValidation::Strict if !unknown.is_empty() => {
            let why = format!("strict decoding error: {}", unknown.join(", "));
            return Err(refuse(call, &why, &why));
        }
        FieldValidation::Warn => call.warn(unknown),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    default(call, &mut read.value, &within(call, &call.touched))?;
    Ok(read.value)
}

/// Gives an object its shape where it may have changed.
fn shape_touched(call: &Call<'_>, mut value: Value, touched: &Touched) -> Result<Read, DecodeError> {
    // what is stored of a custom resource may be older than its schema
    if let Schema::Structural(_) = call.version.schema {
        return object::shape(value, &call.version);
    }
    let aside = touched.set_aside(&mut value);
    let mut read = object::shape(value, &call.version)?;
    touched::put_back(&mut read.value, aside);
    Ok(read)
}

/// Where defaults can be missing in an object that has its shape.
pub(super) fn within(call: &Call<'_>, touched: &Touched) -> Touched {
    match call.resource.traits.default {
        Defaults::None => Touched::NOTHING,
        Defaults::Within(members, _) => touched.among(members),
        Defaults::Anywhere(_) => touched.clone(),
    }
}

/// Defaults, and the shape again: defaults may have filled in what has members of its own.
pub(super) fn default(call: &Call<'_>, value: &mut Value, touched: &Touched) -> Result<(), Failure> {
    if *touched == Touched::NOTHING {
        return Ok(());
    }
    match call.resource.traits.default {
        Defaults::None => {}
        Defaults::Within(_, fill) | Defaults::Anywhere(fill) => fill(value),
    }
    if let Schema::Typed(_) = call.version.schema {
        let shaped = shape_touched(call, value.take(), touched);
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
    default(call, &mut value, &within(call, &Touched::All))?;
    Ok(value)
}
