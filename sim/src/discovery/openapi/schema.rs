//! Schemas of an OpenAPI document: built-in kinds by the table of their types, custom ones by their definitions.
//!
//! Types and structure are complete. Built-in kinds have no descriptions: the table holds none.

use std::collections::BTreeSet;

use kube_schema::table::{Apply, Field, Kind, Omit, Table, TypeId};
use serde_json::{Map, Value, json};

use crate::registry::{Resource, Schema};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The schemas of these resources in a version, with all that they refer to.
pub(super) fn schemas<'a>(
    resources: impl Iterator<Item = &'a Resource>,
    version: &str,
) -> Map<String, Value> {
    let table = Table::builtin();
    let mut out = Map::new();
    let mut wanted: BTreeSet<&'static str> = BTreeSet::new();
    for resource in resources {
        let kind = json!([{"group": resource.id.group.as_ref(), "version": version, "kind": resource.kind.as_ref()}]);
        match resource.version(version).map(|one| &one.schema) {
            Some(Schema::Typed(of)) => {
                let mut schema = structure(table, *of, &mut wanted);
                insert(&mut schema, "x-kubernetes-group-version-kind", kind);
                out.insert(type_name(table, *of), schema);
            }
            Some(Schema::Structural(definition)) => {
                let name = custom_name(resource, version);
                wanted.insert("meta/v1.ObjectMeta");
                out.insert(name, custom(definition, kind));
            }
            None => {}
        }
    }
    while let Some(next) = wanted.pop_first() {
        if let Some(of) = table.find(next)
            && !out.contains_key(&type_name(table, of))
        {
            let schema = structure(table, of, &mut wanted);
            out.insert(type_name(table, of), schema);
        }
    }
    out.extend(scalars());
    out
}

/// The name of a resource's schema.
pub(super) fn name(resource: &Resource, version: &str) -> Option<String> {
    Some(match &resource.version(version)?.schema {
        Schema::Typed(of) => type_name(Table::builtin(), *of),
        Schema::Structural(_) => custom_name(resource, version),
    })
}

fn insert(schema: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = schema {
        members.insert(name.to_owned(), value);
    }
}

fn type_name(table: &Table, of: TypeId) -> String {
    let name = table.get(of).name;
    let (package, kind) = name.split_once('.').unwrap_or((name, ""));
    match package {
        "meta/v1" => format!("{META}.{kind}"),
        "apiextensions/v1" => format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{kind}"),
        package => format!("io.k8s.api.{}.{kind}", package.replace('/', ".")),
    }
}

/// The group backwards, version and kind.
fn custom_name(resource: &Resource, version: &str) -> String {
    let mut parts: Vec<&str> = resource.id.group.split('.').rev().collect();
    parts.extend([version, resource.kind.as_ref()]);
    parts.join(".")
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn structure(table: &'static Table, of: TypeId, wanted: &mut BTreeSet<&'static str>) -> Value {
    let fields = &table.get(of).fields;
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.to_owned(), member(table, field, wanted)))
        .collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.omit == Omit::Never && !matches!(field.kind, Kind::Struct(_)))
        .map(|field| field.name)
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        insert(&mut schema, "required", required.into());
    }
    schema
}

fn member(table: &'static Table, field: &Field, wanted: &mut BTreeSet<&'static str>) -> Value {
    let mut schema = value(table, &field.kind, wanted);
    let merge = field.merge;
    let strategies = [
        (merge.retains_keys, "retainKeys"),
        (merge.merges, "merge"),
        (merge.replaces, "replace"),
    ];
    let strategies: Vec<&str> = strategies
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, name)| *name)
        .collect();
    if !strategies.is_empty() {
        insert(
            &mut schema,
            "x-kubernetes-patch-strategy",
            strategies.join(",").into(),
        );
    }
    if let Some(key) = merge.key {
        insert(&mut schema, "x-kubernetes-patch-merge-key", key.into());
    }
    match &field.apply {
        Apply::Plain => {}
        Apply::Atomic => insert(&mut schema, "x-kubernetes-map-type", "atomic".into()),
        Apply::Set => insert(&mut schema, "x-kubernetes-list-type", "set".into()),
        Apply::Keys(keys) | Apply::Leaves(keys) => {
            let keys: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
            insert(&mut schema, "x-kubernetes-list-type", "map".into());
            insert(&mut schema, "x-kubernetes-list-map-keys", keys.into());
        }
    }
    schema
}

fn value(table: &'static Table, kind: &Kind, wanted: &mut BTreeSet<&'static str>) -> Value {
    match kind {
        Kind::String(_) | Kind::Duration => json!({"type": "string"}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Int(go) if go.contains("64") => json!({"type": "integer", "format": "int64"}),
        Kind::Int(_) => json!({"type": "integer", "format": "int32"}),
        Kind::Float => json!({"type": "number", "format": "double"}),
        Kind::Bytes => json!({"type": "string", "format": "byte"}),
        Kind::Time => reference(&format!("{META}.Time")),
        Kind::MicroTime => reference(&format!("{META}.MicroTime")),
        Kind::Quantity => reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
        Kind::IntOrString => reference("io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
        Kind::Any => json!({"type": "object"}),
        Kind::Pointer(inner) => value(table, inner, wanted),
        Kind::List(item) => json!({"type": "array", "items": value(table, item, wanted)}),
        Kind::Map(item) => json!({"type": "object", "additionalProperties": value(table, item, wanted)}),
        Kind::Struct(of) => {
            wanted.insert(table.get(*of).name);
            reference(&type_name(table, *of))
        }
    }
}

/// Types that are more than a JSON type.
fn scalars() -> [(String, Value); 4] {
    [
        (
            format!("{META}.Time"),
            json!({"type": "string", "format": "date-time"}),
        ),
        (
            format!("{META}.MicroTime"),
            json!({"type": "string", "format": "date-time"}),
        ),
        (
            "io.k8s.apimachinery.pkg.api.resource.Quantity".into(),
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        ),
        (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString".into(),
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
    ]
}

/// The schema of a definition, with the members that every object has.
fn custom(definition: &Value, kind: Value) -> Value {
    let mut schema = definition
        .pointer("/schema/openAPIV3Schema")
        .cloned()
        .unwrap_or_else(|| json!({"type": "object"}));
    insert(&mut schema, "x-kubernetes-group-version-kind", kind);
    if let Value::Object(members) = &mut schema {
        let properties = members.entry("properties").or_insert_with(|| json!({}));
        insert(properties, "apiVersion", json!({"type": "string"}));
        insert(properties, "kind", json!({"type": "string"}));
        insert(properties, "metadata", reference(&format!("{META}.ObjectMeta")));
    }
    schema
}
