//! The controllers of a controller manager that workloads lean on.

mod budgets;
mod claims;
mod deployment;
mod jobs;
mod node_lifecycle;
mod orphans;
mod quotas;
mod replica_set;
mod stateful_set;
#[cfg(test)]
mod tests;

pub(crate) use self::budgets::Budgets;
pub(crate) use self::claims::Claims;
pub(crate) use self::deployment::Deployments;
pub(crate) use self::jobs::Jobs;
pub(crate) use self::node_lifecycle::NodeLifecycle;
pub(crate) use self::orphans::Orphans;
pub(crate) use self::quotas::Quotas;
pub(crate) use self::replica_set::ReplicaSets;
pub(crate) use self::stateful_set::StatefulSets;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::{at, metadata_text};
use crate::selector::Selector;
use crate::store::{Key, ResourceId};
use crate::world::{Client, pod_path};

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

/// Does a pod have the labels of a set's selector?
fn selects(api: &Api, set: &Value, key: &Key) -> bool {
    let selector = Selector::of_object(at(set, "/spec/selector").unwrap_or(&Value::Null));
    let id = ResourceId {
        group: "".into(),
        plural: "pods".into(),
    };
    let pod = api.store.get(&id, key);
    pod.is_some_and(|pod| selector.matches(&key.namespace, &key.name, &pod.head))
}

/// Takes the reference to a set from a pod.
fn release(client: &mut Client<'_>, key: &Key, pod: &Value, set: &Value) {
    let reference = json!({"$patch": "delete", "uid": metadata_text(set, "uid")});
    let patch = json!({"metadata": {"uid": metadata_text(pod, "uid"), "ownerReferences": [reference]}});
    client.strategic(&pod_path(key), &patch);
}

/// Since when the pod is ready.
fn ready_since(pod: &Value) -> Option<Timestamp> {
    let list = at(pod, "/status/conditions").and_then(Value::as_array)?;
    let ready = list.iter().find(|one| one.get("type") == Some(&"Ready".into()))?;
    let holds = ready.get("status") == Some(&"True".into());
    holds.then(|| ready.get("lastTransitionTime")?.as_str()?.parse().ok())?
}

/// A whole number of an object; nothing counts as zero.
fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}
