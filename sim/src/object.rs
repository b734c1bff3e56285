//! Reading an object from a body, and the parts of its metadata that the server owns.

use jiff::Timestamp;
use kube_schema::table::Table;
use kube_schema::typed;
use kube_schema::validate::{Errors, FieldError};
use serde_json::{Map, Value, json};

use crate::registry::{Resource, Schema, Version};
use crate::status::Failure;
use crate::validation::text;
use crate::wire;

/// An object that was read.
pub(crate) struct Read {
    pub(crate) value: Value,
    /// Members that were dropped.
    pub(crate) unknown: Vec<String>,
}

/// What to do about members that no field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Reads a body as a resource's kind, which the request's path names.
pub(crate) fn parse(body: &[u8], kind: &str, api_version: &str, version: &Version) -> Result<Value, Failure> {
    let mut value = wire::parse(body).map_err(|_| {
        let why = crate::json_error::go_error(body);
        unrecognized(
            body,
            kind,
            &format!("couldn't get version/kind; json parse error: {why}"),
        )
    })?;
    if let Some(found) = not_an_object(&value) {
        let why = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        );
        return Err(unrecognized(body, kind, &why));
    }
    let given = [text(&value, "apiVersion"), text(&value, "kind")];
    check_type(given, metadata_text(&value, "name"), kind, api_version, version)?;
    if let Value::Object(members) = &mut value {
        members.insert("apiVersion".into(), api_version.into());
        members.insert("kind".into(), kind.into());
    }
    Ok(value)
}

/// The type of a value that is none with members, as Go names it.
fn not_an_object(value: &Value) -> Option<&'static str> {
    match value {
        Value::Object(_) | Value::Null => None,
        Value::Array(_) => Some("array"),
        Value::String(_) => Some("string"),
        Value::Number(_) => Some("number"),
        Value::Bool(_) => Some("bool"),
    }
}

/// A body that is no object, shown by its beginning.
pub(crate) fn unrecognized(body: &[u8], kind: &str, why: &str) -> Failure {
    let start = body.get(..30).unwrap_or(body);
    let dots = if body.len() > start.len() { " ..." } else { "" };
    let shown = match start.first() {
        None => "<empty>".into(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start
            .iter()
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
    };
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown}{dots})"
    ))
}

/// Whether the version and kind of a body, which may be empty, are those of the request's path.
pub(crate) fn check_type<'a>(
    given: [&'a str; 2],
    name: &str,
    kind: &'a str,
    api_version: &'a str,
    version: &Version,
) -> Result<(), Failure> {
    let [given_version, given_kind] = given;
    let or = |given: &'a str, expected: &'a str| if given.is_empty() { expected } else { given };
    let (given_version, given_kind) = (or(given_version, api_version), or(given_kind, kind));
    if given_version == api_version && given_kind == kind {
        return Ok(());
    }
    if matches!(version.schema, Schema::Structural(_)) && given_version != api_version {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )));
    }
    if matches!(version.schema, Schema::Structural(_)) {
        let mut errors = Errors::default();
        errors.invalid("kind", given_kind, &format!("must be {kind}"));
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let subject = crate::status::Subject::new(group, given_kind);
        return Err(Failure::invalid(&subject, name, &errors.0));
    }
    let short = given_version.rsplit('/').next().unwrap_or_default();
    Err(Failure::bad_request(format!(
        "{given_kind} in version {short:?} cannot be handled as a {kind}: {}",
        unregistered(given_kind, given_version)
    )))
}

/// The message of a server for an unknown kind.
pub(crate) fn unregistered(kind: &str, version: &str) -> String {
    format!("no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:110\"")
}

/// Gives an object its kind's shape: what Go would keep, or what the schema keeps.
pub(crate) fn shape(value: Value, version: &Version) -> Result<Read, typed::DecodeError> {
    match &version.schema {
        Schema::Typed(of) => {
            let decoded = typed::decode(Table::builtin(), *of, value)?;
            Ok(Read {
                value: decoded.value,
                unknown: decoded.unknown,
            })
        }
        Schema::Structural(definition) => structural(value, definition),
    }
}

fn structural(mut value: Value, definition: &Value) -> Result<Read, typed::DecodeError> {
    let schema = at(definition, "/schema/openAPIV3Schema");
    let mut unknown = Vec::new();
    if let Some(schema) = schema {
        unknown = kube_schema::structural::prune(schema, &mut value);
        kube_schema::structural::default(schema, &mut value);
    }
    let table = Table::builtin();
    if let (Some(of), Some(metadata)) = (table.find("meta/v1.ObjectMeta"), value.get_mut("metadata")) {
        let decoded = typed::decode(table, of, metadata.take())?;
        *metadata = decoded.value;
        unknown.extend(decoded.unknown.into_iter().map(|path| format!("metadata.{path}")));
    }
    Ok(Read { value, unknown })
}

/// What the schema of a custom resource and its rules refuse; nothing for built-in kinds.
pub(crate) fn schema_errors(object: &Value, old: Option<&Value>, version: &Version) -> Vec<FieldError> {
    let Schema::Structural(definition) = &version.schema else {
        return Vec::new();
    };
    let schema = at(definition, "/schema/openAPIV3Schema");
    let mut errors = Errors(schema.map_or_else(Vec::new, |schema| {
        kube_schema::structural::validate(schema, object, old)
    }));
    if let Some(status) = object.get("status").filter(|status| not_members(status)) {
        odd_status(&mut errors, status, definition);
    }
    let path = at(definition, "/subresources/scale/specReplicasPath").and_then(Value::as_str);
    let replicas = path
        .and_then(|path| object.pointer(&path.replace('.', "/")))
        .and_then(Value::as_i64);
    if let (Some(path), Some(replicas @ ..0)) = (path, replicas) {
        errors.invalid(path, replicas, "should be a non-negative integer");
    }
    if errors.0.is_empty() {
        errors.0 = crate::crd::rules::errors(&version.rules, object, old);
    }
    errors.0
}

fn not_members(value: &Value) -> bool {
    !value.is_object() && !value.is_null()
}

/// A status without members is compared as a whole, and by readers of its counts.
fn odd_status(errors: &mut Errors, status: &Value, definition: &Value) {
    for error in errors.0.iter_mut().filter(|error| error.path == "status") {
        error.detail = error.detail.replacen("status", "", 1);
    }
    let found = match status {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Number(number) if number.is_f64() => "float64",
        _ => "int64",
    };
    let shown = kube_schema::patch::go_value(status);
    for (name, empty) in [("statusReplicasPath", json!(0)), ("labelSelectorPath", json!(""))] {
        let scale = at(definition, "/subresources/scale");
        if let Some(path) = scale.and_then(|scale| scale.get(name)).and_then(Value::as_str) {
            let why = format!(
                "{path} accessor error: {shown} is of the type {found}, expected map[string]interface{{}}"
            );
            errors.invalid(path, empty, &why);
        }
    }
}

/// The object's metadata, made if absent.
pub(crate) fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let members = object.as_object_mut()?;
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    metadata.as_object_mut()
}

/// Sets or (with `null`) removes a member of the metadata.
pub(crate) fn set_metadata(object: &mut Value, name: &str, value: Value) {
    if let Some(metadata) = metadata(object) {
        if value.is_null() {
            metadata.remove(name);
        } else {
            metadata.insert(name.to_owned(), value);
        }
    }
}

pub(crate) fn get_metadata<'a>(object: &'a Value, name: &str) -> &'a Value {
    const NULL: &Value = &Value::Null;
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(name))
        .unwrap_or(NULL)
}

/// The member at a path of plain names: what `Value::pointer` finds there, without unescaping each step.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut steps = path.split('/').skip(1);
    steps.try_fold(object, |value, step| value.get(step))
}

/// The object's metadata, or null.
pub(crate) fn metadata_of(object: &Value) -> &Value {
    const NULL: &Value = &Value::Null;
    object.get("metadata").unwrap_or(NULL)
}

pub(crate) fn metadata_text<'a>(object: &'a Value, name: &str) -> &'a str {
    get_metadata(object, name).as_str().unwrap_or_default()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = get_metadata(object, "finalizers").as_array();
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whole seconds, as metadata has them.
pub(crate) fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}

/// Wipes what only the server sets at creation.
pub(crate) fn wipe_system_fields(object: &mut Value) {
    for name in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generation",
        "resourceVersion",
        "managedFields",
    ] {
        set_metadata(object, name, Value::Null);
    }
}

/// Whether spec (or, with `content`, anything but metadata and status) differs.
pub(crate) fn spec_differs(new: &Value, old: &Value, resource: &Resource) -> bool {
    if resource.traits.generation == crate::registry::Generation::Spec {
        return new.get("spec") != old.get("spec");
    }
    if resource.traits.generation == crate::registry::Generation::SpecAndAnnotations {
        let annotations = |object| get_metadata(object, "annotations");
        return new.get("spec") != old.get("spec") || annotations(new) != annotations(old);
    }
    if resource.traits.generation == crate::registry::Generation::ContentAndLabels
        && get_metadata(new, "labels") != get_metadata(old, "labels")
    {
        return true;
    }
    let has_status = resource.is_custom() && resource.has(crate::registry::Subresource::Status);
    let counts = |(name, _): &(&String, &Value)| match name.as_str() {
        "metadata" => false,
        "status" => resource.is_custom() && !has_status,
        _ => true,
    };
    let [new, old] = [new, old].map(|object| object.as_object().into_iter().flatten().filter(counts));
    new.ne(old)
}
