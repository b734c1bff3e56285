//! What controllers read of objects, and how they own them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::{at, metadata_text};
use crate::selector::Selector;
use crate::store::{Key, ResourceId};
use crate::world::{Client, pod_path};

/// The objects of a resource that an owner controls, in order.
pub(super) fn controlled(api: &Api, owner: &Value, group: &str, plural: &str) -> Vec<(Key, Arc<Value>)> {
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
pub(super) fn controller(object: &Value) -> Option<&Value> {
    let owners = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)?;
    owners
        .iter()
        .find(|one| one.get("controller") == Some(&Value::Bool(true)))
}

/// The reference to an owner that its dependents carry.
pub(super) fn reference(owner: &Value, kind: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "name": metadata_text(owner, "name"),
        "uid": metadata_text(owner, "uid"), "controller": true, "blockOwnerDeletion": true})
}

/// Does a pod have the labels of a set's selector?
pub(super) fn selects(api: &Api, set: &Value, key: &Key) -> bool {
    let selector = Selector::of_object(at(set, "/spec/selector").unwrap_or(&Value::Null));
    let id = ResourceId {
        group: "".into(),
        plural: "pods".into(),
    };
    let pod = api.store.get(&id, key);
    pod.is_some_and(|pod| selector.matches(&key.namespace, &key.name, &pod.head))
}

/// Takes the reference to a set from a pod.
pub(super) fn release(client: &mut Client<'_>, key: &Key, pod: &Value, set: &Value) {
    let reference = json!({"$patch": "delete", "uid": metadata_text(set, "uid")});
    let patch = json!({"metadata": {"uid": metadata_text(pod, "uid"), "ownerReferences": [reference]}});
    client.strategic(&pod_path(key), &patch);
}

/// Since when the pod is ready.
pub(super) fn ready_since(pod: &Value) -> Option<Timestamp> {
    let list = at(pod, "/status/conditions").and_then(Value::as_array)?;
    let ready = list.iter().find(|one| one.get("type") == Some(&"Ready".into()))?;
    let holds = ready.get("status") == Some(&"True".into());
    holds.then(|| ready.get("lastTransitionTime")?.as_str()?.parse().ok())?
}

/// A whole number of an object; nothing counts as zero.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}
