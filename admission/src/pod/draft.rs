//! The draft of a pod, which steps read and change.

use kruise_plan_kit::ledger::Workload;
use kruise_views::Labels;
use serde_json::Value;

use crate::json::{items, text};

/// A label or annotation.
pub(crate) fn entry<'a>(object: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(map)?.get(key)?.as_str()
}

/// Labels of the pod.
pub(super) fn labels(pod: &Value) -> Labels {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
    let texts = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    texts.collect()
}

/// The workload that controls the pod, as its owner reference says.
pub(super) fn controller(pod: &Value) -> Option<Workload> {
    let owners = items(pod.get("metadata")?, "ownerReferences").iter();
    let mut controllers = owners.filter(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    let owner = controllers.next()?;
    let group = text(owner, "apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    Some(Workload {
        group: group.to_owned(),
        kind: text(owner, "kind").to_owned(),
        name: text(owner, "name").to_owned(),
    })
}

/// A list of an object, made if it is absent.
pub(super) fn list<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Vec<Value>> {
    let member = object.as_object_mut()?.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Array(Vec::new());
    }
    member.as_array_mut()
}

/// Sets an annotation.
pub(super) fn annotate(pod: &mut Value, key: &str, value: String) {
    for name in ["metadata", "annotations"] {
        let path = if name == "metadata" { "" } else { "/metadata" };
        let Some(Value::Object(parent)) = pod.pointer_mut(path) else {
            return;
        };
        let member = parent.entry(name).or_insert(Value::Null);
        if member.is_null() {
            *member = Value::Object(serde_json::Map::new());
        }
    }
    if let Some(Value::Object(annotations)) = pod.pointer_mut("/metadata/annotations") {
        annotations.insert(key.to_owned(), value.into());
    }
}
