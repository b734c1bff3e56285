//! From a definition to a row.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::registry::{
    Conversion, Generation, Metadata, Resource, Schema, Scope, Subresource, Traits, Version, Writes,
};
use crate::store::ResourceId;
use crate::validation::text;

fn fill(of: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = of
        && members.get(name).is_none_or(Value::is_null)
    {
        members.insert(name.to_owned(), value);
    }
}

pub(super) fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions.into_iter().flatten()
}

pub(super) fn is(of: &Value, name: &str) -> bool {
    of.get(name) == Some(&Value::Bool(true))
}

pub(crate) fn default(definition: &mut Value) {
    let stored: Vec<Value> = versions(definition)
        .filter(|version| is(version, "storage"))
        .map(|version| version.get("name").cloned().unwrap_or_default())
        .collect();
    if let Some(spec) = definition.get_mut("spec") {
        fill(spec, "conversion", json!({"strategy": "None"}));
        if let Some(service) = spec.pointer_mut("/conversion/webhook/clientConfig/service") {
            fill(service, "port", json!(443));
        }
        if let Some(names) = spec.get_mut("names") {
            let kind = text(names, "kind").to_owned();
            if !kind.is_empty() {
                fill(names, "singular", kind.to_lowercase().into());
                fill(names, "listKind", format!("{kind}List").into());
            }
        }
    }
    if let Some(status) = definition.get_mut("status")
        && status
            .get("storedVersions")
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
        && let Value::Object(members) = status
    {
        members.insert("storedVersions".into(), stored.into());
    }
}

/// The status of a new definition: nothing is accepted yet.
pub(crate) fn prepare_create(definition: &mut Value) {
    let stored: Vec<Value> = versions(definition)
        .filter(|version| is(version, "storage"))
        .map(|version| version.get("name").cloned().unwrap_or_default())
        .collect();
    if let Value::Object(members) = definition {
        let names = json!({"plural": "", "kind": ""});
        members.insert(
            "status".into(),
            json!({"conditions": null, "acceptedNames": names, "storedVersions": stored}),
        );
    }
}

/// The rules of all versions that nobody evaluates, each with its place and the reason.
pub(crate) fn without_effect(definition: &Value) -> Vec<String> {
    let of_version = |version| {
        let unread = at_schema(version).map(super::rules::unread).unwrap_or_default();
        let name = text(version, "name").to_owned();
        unread.into_iter().map(move |rule| format!("{name}: {rule}"))
    };
    versions(definition).flat_map(of_version).collect()
}

fn at_schema(version: &Value) -> Option<&Value> {
    version.pointer("/schema/openAPIV3Schema")
}

/// The row that a definition adds.
pub(crate) fn resource(definition: &Value) -> Option<Resource> {
    let spec = definition.get("spec")?;
    let names = spec.get("names")?;
    let list = |name: &str| -> Vec<String> {
        let items = names.get(name).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(|one| one.as_str().map(str::to_owned))
            .collect()
    };
    let mut served: Vec<Version> = versions(definition)
        .filter(|version| is(version, "served"))
        .map(|version| Version {
            name: text(version, "name").to_owned(),
            schema: Schema::Structural(Arc::new(version.clone())),
            rules: at_schema(version)
                .map(super::rules::read)
                .unwrap_or_default()
                .into(),
        })
        .collect();
    served.sort_by_key(|version| std::cmp::Reverse(rank(&version.name)));
    let storage = versions(definition).find(|version| is(version, "storage"))?;
    let any = |name: &str| {
        versions(definition).any(|version| version.pointer(&format!("/subresources/{name}")).is_some())
    };
    let mut subresources = Vec::new();
    if any("status") {
        subresources.push(Subresource::Status);
    }
    if any("scale") {
        subresources.push(Subresource::Scale);
    }
    Some(Resource {
        id: ResourceId {
            group: text(spec, "group").into(),
            plural: text(names, "plural").into(),
        },
        kind: text(names, "kind").into(),
        singular: text(names, "singular").to_owned(),
        short_names: list("shortNames"),
        categories: list("categories"),
        scope: if text(spec, "scope") == "Namespaced" {
            Scope::Namespaced
        } else {
            Scope::Cluster
        },
        versions: served,
        storage: text(storage, "name").to_owned(),
        conversion: match spec.pointer("/conversion/strategy").and_then(Value::as_str) {
            Some("Webhook") => {
                let webhook = spec.pointer("/conversion/webhook").cloned();
                Conversion::Webhook(Arc::new(webhook.unwrap_or_default()))
            }
            _ => Conversion::None,
        },
        subresources,
        writes: Writes::All,
        traits: Traits {
            generation: Generation::Content,
            status_metadata: Metadata::Closed,
            metadata: Traits::FOREIGN,
            unconditional_update: false,
            ..Traits::PLAIN
        },
    })
}

/// Stable before beta before alpha, higher numbers first.
fn rank(version: &str) -> (u8, u32, u32) {
    let rest = version.strip_prefix('v').unwrap_or_default();
    let (stage, major, minor) = if let Some((major, minor)) = rest.split_once("beta") {
        (1, major, minor)
    } else if let Some((major, minor)) = rest.split_once("alpha") {
        (0, major, minor)
    } else {
        (2, rest, "0")
    };
    (
        stage,
        major.parse().unwrap_or_default(),
        minor.parse().unwrap_or_default(),
    )
}

/// What the controller of definitions writes into the status once names are accepted.
pub(crate) fn established(definition: &mut Value, now: Timestamp) {
    let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let time = format!("{now:.0}");
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time});
    if let Some(Value::Object(status)) = definition.get_mut("status") {
        status.insert("acceptedNames".into(), names);
        status.insert(
            "conditions".into(),
            json!([
                condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                condition(
                    "Established",
                    "InitialNamesAccepted",
                    "the initial names have been accepted"
                ),
            ]),
        );
    }
}

/// Marks a definition whose objects are about to be removed.
pub(crate) fn terminate(definition: &mut Value, now: Timestamp) {
    let time = format!("{now:.0}");
    crate::object::set_metadata(definition, "deletionTimestamp", time.as_str().into());
    let condition = json!({"type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        "lastTransitionTime": time});
    if let Some(Value::Array(conditions)) = definition.pointer_mut("/status/conditions") {
        conditions.push(condition);
    }
}
