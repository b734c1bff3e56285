//! Values whose type is not that of their field in a schema.

use serde_json::Value;

use super::is;
use super::path::Path;
use crate::mismatch::{TypeMismatch, integer, type_of};

/// Finds the values of an object that have another type than the schema says. `null` fits everywhere: a server drops it
/// or reads it as absent. `path` is the place of the object, such as `spec`.
pub fn mismatches(schema: &Value, object: &Value, path: &str) -> Vec<TypeMismatch> {
    let mut found = Vec::new();
    let root = Path::ROOT;
    let place = if path.is_empty() { root } else { root.member(path) };
    check(schema, object, &place, &mut found);
    found
}

fn check(schema: &Value, value: &Value, path: &Path<'_>, found: &mut Vec<TypeMismatch>) {
    if value.is_null() {
        return;
    }
    if let Some((wanted, given)) = misfit(schema, value) {
        found.push(TypeMismatch {
            path: path.to_string(),
            wanted,
            found: given,
        });
        return;
    }
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties");
            let others = schema.get("additionalProperties");
            for (name, value) in members {
                let of_member = properties.and_then(|properties| properties.get(name));
                if let Some(schema) = of_member.or(others) {
                    check(schema, value, &path.member(name), found);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                check(schema, item, &path.item(index), found);
            }
        }
        _ => {}
    }
}

/// What is wanted and what was found, if the value does not fit.
fn misfit(schema: &Value, value: &Value) -> Option<(&'static str, &'static str)> {
    let fits = |wanted, fits: bool| (!fits).then(|| (wanted, type_of(value)));
    if is(schema, "x-kubernetes-int-or-string") {
        return match value {
            Value::String(_) => None,
            Value::Number(_) => integer(value, true),
            other => Some(("an integer or a string", type_of(other))),
        };
    }
    match schema.get("type").and_then(Value::as_str)? {
        "integer" => integer(
            value,
            schema.get("format").is_some_and(|format| format == "int32"),
        ),
        "number" => fits("a number", value.is_number()),
        "string" => fits("a string", value.is_string()),
        "boolean" => fits("a boolean", value.is_boolean()),
        "array" => fits("an array", value.is_array()),
        "object" => fits("an object", value.is_object()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::mismatches;

    fn found(value: &Value) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {
            "count": {"type": "integer", "format": "int32"}, "long": {"type": "integer"},
            "share": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "flag": {"type": "boolean"}, "text": {"type": "string"}, "ratio": {"type": "number"},
            "names": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
        }});
        let all = mismatches(&schema, value, "spec");
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_wrong_type_is_named_by_path_with_both_types_in_the_words_of_json() {
        for (value, message) in [
            (
                json!({"count": "three"}),
                "spec.count: must be an integer, not a string",
            ),
            (
                json!({"count": 1.5}),
                "spec.count: must be an integer, not a number with a fraction",
            ),
            (
                json!({"count": 3_000_000_000_i64}),
                "spec.count: must be an integer of 32 bits, not a longer one",
            ),
            (
                json!({"long": u64::MAX}),
                "spec.long: must be an integer of 64 bits, not a longer one",
            ),
            (
                json!({"share": true}),
                "spec.share: must be an integer or a string, not a boolean",
            ),
            (
                json!({"flag": "true"}),
                "spec.flag: must be a boolean, not a string",
            ),
            (json!({"text": 1}), "spec.text: must be a string, not an integer"),
            (json!({"ratio": []}), "spec.ratio: must be a number, not an array"),
            (
                json!({"names": "a"}),
                "spec.names: must be an array, not a string",
            ),
            (
                json!({"names": ["a", 1]}),
                "spec.names[1]: must be a string, not an integer",
            ),
            (
                json!({"labels": {"a": true}}),
                "spec.labels.a: must be a string, not a boolean",
            ),
            (json!([]), "spec: must be an object, not an array"),
        ] {
            assert_eq!(found(&value), [message]);
        }
    }

    #[test]
    fn null_whole_numbers_and_what_the_schema_does_not_name_fit() {
        let none: [&str; 0] = [];
        let value = json!({"count": 2.0, "long": 3_000_000_000_i64, "share": "10%", "flag": null, "any": {"x": 1},
            "newer": 1});
        assert_eq!(found(&value), none);
    }
}
