//! The controllers of a controller manager that workloads lean on.

mod budgets;
mod claims;
mod deployment;
mod orphans;
mod replica_set;
#[cfg(test)]
mod tests;

pub(crate) use self::budgets::Budgets;
pub(crate) use self::claims::Claims;
pub(crate) use self::deployment::Deployments;
pub(crate) use self::orphans::Orphans;
pub(crate) use self::replica_set::ReplicaSets;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::Api;
use crate::object::metadata_text;
use crate::store::{Key, ResourceId};

/// The objects of a resource that an owner controls, in order.
fn controlled(api: &Api, owner: &Value, group: &str, plural: &str) -> Vec<(Key, Arc<Value>)> {
    let id = ResourceId {
        group: group.into(),
        plural: plural.into(),
    };
    let uid = metadata_text(owner, "uid");
    let places = api.store.dependents(uid).filter(|(of, _)| *of == id);
    let objects = places.filter_map(|(_, key)| {
        let object = api.store.get(&id, key)?.value();
        (controller(&object)?.get("uid") == Some(&uid.into())).then(|| (key.clone(), object))
    });
    objects.collect()
}

/// The owner reference of an object's controller.
fn controller(object: &Value) -> Option<&Value> {
    let owners = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)?;
    owners
        .iter()
        .find(|one| one.get("controller") == Some(&Value::Bool(true)))
}

/// The reference to an owner that its dependents carry.
fn reference(owner: &Value, kind: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "name": metadata_text(owner, "name"),
        "uid": metadata_text(owner, "uid"), "controller": true, "blockOwnerDeletion": true})
}

/// A whole number of an object; nothing counts as zero.
fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}
