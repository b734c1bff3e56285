//! Builders for structural schemas, so that a CRD reads like a list of fields.
//!
//! Each function returns one schema. [`Object`] collects members, one line each. [`shared`] has schemas that
//! several kinds use.

mod members;
pub mod shared;

pub use members::Object;

use serde_json::{Map, Value, json};

/// A member of an object: name, schema, and whether it must be there.
pub type Field = (&'static str, Value, Required);

/// Must a member be there?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    /// The server refuses the object without it.
    Yes,
    /// It may be absent.
    No,
}

/// An optional member.
pub fn field(name: &'static str, schema: Value) -> Field {
    (name, schema, Required::No)
}

/// A member that must be there.
pub fn required(name: &'static str, schema: Value) -> Field {
    (name, schema, Required::Yes)
}

/// An object with these members.
pub fn object(description: &str, fields: Vec<Field>) -> Value {
    let must: Vec<&str> = fields
        .iter()
        .filter(|(.., required)| *required == Required::Yes)
        .map(|(name, ..)| *name)
        .collect();
    let properties: Map<String, Value> = fields
        .into_iter()
        .map(|(name, schema, _)| (name.to_owned(), schema))
        .collect();
    let schema = json!({"type": "object", "description": description, "properties": properties});
    if must.is_empty() {
        schema
    } else {
        with(schema, "required", json!(must))
    }
}

/// A signed 32-bit number.
pub fn int32(description: &str) -> Value {
    json!({"type": "integer", "format": "int32", "description": description})
}

/// A signed 64-bit number.
pub fn int64(description: &str) -> Value {
    json!({"type": "integer", "format": "int64", "description": description})
}

/// True or false.
pub fn boolean(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

/// A text.
pub fn string(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A time, RFC 3339.
pub fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

/// A number, or a percentage as text.
pub fn int_or_string(description: &str) -> Value {
    json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
        "description": description,
    })
}

/// A list.
pub fn list(description: &str, items: Value) -> Value {
    json!({"type": "array", "description": description, "items": items})
}

/// A map of texts.
pub fn text_map(description: &str, values: &str) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": string(values)})
}

/// Any value, stored as written.
pub fn anything(description: &str) -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true, "description": description})
}

/// Schema of a text in a list or map, which needs no description.
pub fn text_items() -> Value {
    json!({"type": "string"})
}

/// A label selector, replaced as a whole by apply.
pub fn label_selector(description: &str) -> Value {
    let atomic = |schema: Value| with(schema, "x-kubernetes-list-type", "atomic".into());
    let requirement = object(
        "One requirement on one label; all requirements of a selector must hold.",
        vec![
            required(
                "key",
                string("Label key that the requirement is about, such as app or tier."),
            ),
            required(
                "operator",
                string("How the label is compared: In, NotIn, Exists or DoesNotExist."),
            ),
            field(
                "values",
                atomic(list(
                    "Values compared with; at least one for In and NotIn, none for the others. Default: none.",
                    text_items(),
                )),
            ),
        ],
    );
    let schema = object(
        description,
        vec![
            field(
                "matchExpressions",
                atomic(list(
                    "Requirements on labels, all of which must hold. Default: none.",
                    requirement,
                )),
            ),
            field(
                "matchLabels",
                text_map(
                    "Labels that must have exactly these values. Default: none.",
                    "Value the label must have, compared as text.",
                ),
            ),
        ],
    );
    with(schema, "x-kubernetes-map-type", "atomic".into())
}

/// A map whose values have this schema.
pub fn map(description: &str, values: impl Into<Value>) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": values.into()})
}

/// A value that is filled in where there is none.
pub fn defaulted(schema: Value, value: impl Into<Value>) -> Value {
    with(schema, "default", value.into())
}

/// A text that must be one of these.
pub fn one_of(schema: Value, values: &[&str]) -> Value {
    with(schema, "enum", json!(values))
}

/// A number that must not be less.
pub fn at_least(schema: Value, minimum: i64) -> Value {
    with(schema, "minimum", minimum.into())
}

/// A schema with one more keyword, such as `pattern` or `x-kubernetes-list-type`.
pub fn with(mut schema: Value, key: &str, value: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.insert(key.to_owned(), value);
    }
    schema
}
