//! Custom resources by their structural schema: pruning, defaulting, validation.
//!
//! The schema is the `openAPIV3Schema` of a version as JSON. `apiVersion`, `kind` and `metadata` of the object, and of
//! embedded resources, are not the schema's business.

mod path;
mod text;
mod types;
mod validate;

use serde_json::{Map, Value};

use self::path::Path;
pub use self::text::bad_patterns;
pub use self::types::mismatches;
pub use self::validate::validate;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const TYPE_META: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn is(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

/// Drops members that the schema does not name; returns their paths.
pub fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    prune_at(schema, object, &Path::ROOT, true, &mut dropped);
    dropped
}

fn prune_at(
    schema: &Value,
    value: &mut Value,
    path: &Path<'_>,
    is_resource: bool,
    dropped: &mut Vec<String>,
) {
    match value {
        Value::Object(members) => prune_members(schema, members, path, is_resource, dropped),
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune_at(schema, item, &path.item(index), is(schema, EMBEDDED), dropped);
            }
        }
        _ => {}
    }
}

fn prune_members(
    schema: &Value,
    members: &mut Map<String, Value>,
    path: &Path<'_>,
    is_resource: bool,
    dropped: &mut Vec<String>,
) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    let keeps_unknown = is(schema, PRESERVE) || others == Some(&Value::Bool(true));
    members.retain(|name, value| {
        if is_resource && TYPE_META.contains(&name.as_str()) {
            return true;
        }
        let below = path.member(name);
        let known = properties.and_then(|properties| properties.get(name));
        match known.or_else(|| others.filter(|others| others.is_object())) {
            Some(schema) => {
                prune_at(schema, value, &below, is(schema, EMBEDDED), dropped);
                true
            }
            None if keeps_unknown => true,
            None => {
                dropped.push(below.to_string());
                false
            }
        }
    });
}

/// Fills in defaults: members that are absent, or `null` where the schema takes no `null`. A `null` that the schema
/// takes no more and that has no default is removed.
pub fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten() {
                let Some(default) = schema.get("default") else {
                    continue;
                };
                let absent = match members.get(name) {
                    None => true,
                    Some(Value::Null) => !is(schema, "nullable"),
                    Some(_) => false,
                };
                if absent {
                    members.insert(name.clone(), default.clone());
                }
            }
            let others = schema
                .get("additionalProperties")
                .filter(|others| others.is_object());
            members.retain(|name, value| {
                let known = properties.and_then(|properties| properties.get(name));
                let Some(schema) = known.or(others) else {
                    return true;
                };
                self::default(schema, value);
                !value.is_null() || is(schema, "nullable")
            });
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    default(schema, item);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{default, prune};

    #[test]
    fn unknown_members_go_unless_the_schema_keeps_them() {
        let schema = json!({"properties": {
            "spec": {"properties": {"a": {}, "free": {"x-kubernetes-preserve-unknown-fields": true},
                "map": {"additionalProperties": {"properties": {"k": {}}}},
                "list": {"items": {"properties": {"n": {}}}}}},
        }});
        let mut object = json!({"kind": "X", "metadata": {"name": "n"}, "zz": 1, "spec": {"a": 1, "b": 2,
            "free": {"any": 1}, "map": {"m": {"k": 1, "l": 2}}, "list": [{"n": 1, "o": 2}]}});
        let dropped = prune(&schema, &mut object);
        assert_eq!(dropped, ["spec.b", "spec.list[0].o", "spec.map.m.l", "zz"]);
        assert_eq!(
            object,
            json!({"kind": "X", "metadata": {"name": "n"}, "spec": {"a": 1, "free": {"any": 1},
                "map": {"m": {"k": 1}}, "list": [{"n": 1}]}})
        );
    }

    #[test]
    fn defaults_reach_into_what_is_there() {
        let schema = json!({"properties": {"spec": {"default": {}, "properties": {
            "n": {"default": 3}, "list": {"items": {"properties": {"p": {"default": "TCP"}}}}}}}});
        let mut object = json!({"spec": {"n": null, "list": [{}, {"p": "UDP"}]}});
        default(&schema, &mut object);
        assert_eq!(
            object,
            json!({"spec": {"n": 3, "list": [{"p": "TCP"}, {"p": "UDP"}]}})
        );
        let mut empty = json!({});
        default(&schema, &mut empty);
        assert_eq!(empty, json!({"spec": {"n": 3}}));
    }
}
