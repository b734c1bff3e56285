//! The server's own schema of a pod, and which of its fields an object uses.
//!
//! A field is named by the type that has it (`Probe.httpGet`), so that one container is enough to show a field that
//! all kinds of containers share.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// Types of an OpenAPI v3 document with their properties.
#[derive(Debug)]
pub struct Schema {
    types: Map<String, Value>,
}

impl Schema {
    /// Reads what the server answers under `/openapi/v3/api/v1`.
    pub fn parse(document: &str) -> Result<Self> {
        let mut document: Value = serde_json::from_str(document).context("the schema is no JSON")?;
        match document.pointer_mut("/components/schemas").map(Value::take) {
            Some(Value::Object(types)) => Ok(Self { types }),
            _ => anyhow::bail!("the document has no schemas"),
        }
    }

    /// Every field of type `root` and of the types below it, as `Type.field`.
    pub fn fields(&self, root: &str) -> BTreeSet<String> {
        let mut found = BTreeMap::new();
        self.collect(root, &mut found);
        found.into_values().flatten().collect()
    }

    fn collect<'a>(&'a self, type_name: &'a str, found: &mut BTreeMap<&'a str, Vec<String>>) {
        if found.contains_key(type_name) {
            return;
        }
        let properties = self.properties(type_name);
        let fields = properties.iter().flat_map(|properties| properties.keys());
        found.insert(type_name, fields.map(|field| path(type_name, field)).collect());
        for property in properties.into_iter().flat_map(Map::values) {
            if let Some(below) = element_type(property) {
                self.collect(below, found);
            }
        }
    }

    /// Which of those fields `object`, a value of type `root`, uses.
    pub fn used(&self, root: &str, object: &Value) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        self.mark(root, object, &mut used);
        used
    }

    /// Removes from `object`, a value of type `root`, the fields that this server does not have.
    pub fn remove_unknown(&self, root: &str, object: &mut Value) {
        match object {
            Value::Array(elements) => {
                for element in elements {
                    self.remove_unknown(root, element);
                }
            }
            Value::Object(members) => {
                // A type without fields of its own, such as a quantity, has any.
                let Some(properties) = self.properties(root) else {
                    return;
                };
                members.retain(|field, _| properties.contains_key(field));
                for (field, value) in members {
                    let property = properties.get(field);
                    match (property.and_then(element_type), value) {
                        (Some(below), Value::Object(entries)) if property.is_some_and(is_map) => {
                            for entry in entries.values_mut() {
                                self.remove_unknown(below, entry);
                            }
                        }
                        (Some(below), value) => self.remove_unknown(below, value),
                        (None, _) => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn mark(&self, type_name: &str, value: &Value, used: &mut BTreeSet<String>) {
        match value {
            Value::Array(elements) => elements
                .iter()
                .for_each(|element| self.mark(type_name, element, used)),
            Value::Object(members) => {
                for (field, value) in members {
                    used.insert(path(type_name, field));
                    let property = self.properties(type_name).and_then(|of| of.get(field));
                    let below = property.and_then(element_type);
                    match (below, value) {
                        (Some(below), Value::Object(entries)) if property.is_some_and(is_map) => {
                            entries.values().for_each(|entry| self.mark(below, entry, used));
                        }
                        (Some(below), value) => self.mark(below, value, used),
                        (None, _) => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn properties(&self, type_name: &str) -> Option<&Map<String, Value>> {
        self.types.get(type_name)?.get("properties")?.as_object()
    }
}

/// `io.k8s.api.core.v1.Probe` and `exec` become `Probe.exec`.
fn path(type_name: &str, field: &str) -> String {
    let short = type_name.rsplit('.').next().unwrap_or(type_name);
    format!("{short}.{field}")
}

fn is_map(property: &Value) -> bool {
    property.get("additionalProperties").is_some()
}

/// The named type of a property, or of the elements of a list or map.
fn element_type(property: &Value) -> Option<&str> {
    let inner = ["items", "additionalProperties"]
        .iter()
        .find_map(|inner| property.get(inner));
    let property = inner.unwrap_or(property);
    let reference = property
        .get("$ref")
        .or_else(|| property.pointer("/allOf/0/$ref"))?;
    reference.as_str()?.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let types = json!({
            "a.Pod": {"properties": {
                "name": {"type": "string"},
                "probe": {"default": {}, "allOf": [reference("a.Probe")]},
                "list": {"items": reference("a.Item")},
                "map": {"additionalProperties": reference("a.Item")},
            }},
            "a.Probe": {"properties": {"exec": {}, "pod": reference("a.Pod")}},
            "a.Item": {"properties": {"x": {}, "y": {}}},
            "a.Other": {"properties": {"z": {}}},
        });
        Schema::parse(&json!({"components": {"schemas": types}}).to_string()).unwrap()
    }

    #[test]
    fn fields_are_those_of_every_type_that_can_be_reached() {
        let fields: Vec<String> = schema().fields("a.Pod").into_iter().collect();
        let expected = [
            "Item.x",
            "Item.y",
            "Pod.list",
            "Pod.map",
            "Pod.name",
            "Pod.probe",
            "Probe.exec",
            "Probe.pod",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn fields_that_the_server_does_not_have_are_removed_at_every_depth() {
        let mut object = json!({
            "name": "web", "new": 1, "probe": {"exec": {"any": 1}, "new": 1}, "list": [{"x": 1, "new": 1}],
            "map": {"key": {"y": 2, "new": 1}},
        });
        schema().remove_unknown("a.Pod", &mut object);
        let expected = json!({
            "name": "web", "probe": {"exec": {"any": 1}}, "list": [{"x": 1}], "map": {"key": {"y": 2}},
        });
        assert_eq!(object, expected);
    }

    #[test]
    fn used_fields_are_found_through_lists_maps_and_references() {
        let object = json!({"probe": {"exec": 1}, "list": [{"x": 1}], "map": {"key": {"y": 2}}});
        let used: Vec<String> = schema().used("a.Pod", &object).into_iter().collect();
        assert_eq!(
            used,
            [
                "Item.x",
                "Item.y",
                "Pod.list",
                "Pod.map",
                "Pod.probe",
                "Probe.exec"
            ]
        );
    }
}
