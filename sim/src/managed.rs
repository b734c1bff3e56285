//! `metadata.managedFields`, as far as it is kept: who requested which amounts of a pod last by its `resize` endpoint.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::api::Call;
use crate::object::{get_metadata, set_metadata};

const LISTS: [&str; 2] = ["limits", "requests"];

/// Container, list and resource of an amount.
type Amount = (String, String, String);

/// Notes whose the amounts are that an accepted request changes.
pub(crate) fn resized(call: &Call<'_>, old: &Value, new: &mut Value) {
    let (before, after) = (amounts(old), amounts(new));
    let changed: BTreeSet<Amount> = after
        .iter()
        .filter(|(place, amount)| before.get(*place) != Some(*amount))
        .map(|(place, _)| place.clone())
        .collect();
    if changed.is_empty() {
        return;
    }
    let manager = manager(call);
    let mut by_manager: BTreeMap<String, BTreeSet<Amount>> = BTreeMap::new();
    for entry in get_metadata(old, "managedFields")
        .as_array()
        .into_iter()
        .flatten()
    {
        let of = entry.get("manager").and_then(Value::as_str).unwrap_or_default();
        let left = places(entry).difference(&changed).cloned().collect();
        by_manager.insert(of.to_owned(), left);
    }
    by_manager.entry(manager.to_owned()).or_default().extend(changed);
    let entries = by_manager.iter().filter(|(_, places)| !places.is_empty());
    let entries = entries.map(|(manager, places)| {
        json!({
            "manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": written(places), "subresource": "resize",
        })
    });
    set_metadata(new, "managedFields", entries.collect());
}

/// The manager of a write: the one in the request, or the program that sent it.
fn manager<'a>(call: &'a Call<'_>) -> &'a str {
    let program = call.request.agent.split('/').next().unwrap_or_default();
    let named = call.query.text("fieldManager");
    [named, program]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or("unknown")
}

/// What the containers of a pod request.
fn amounts(pod: &Value) -> BTreeMap<Amount, &Value> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let mut found = BTreeMap::new();
    for container in containers.into_iter().flatten() {
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        for list in LISTS {
            let amounts = container.pointer(&format!("/resources/{list}"));
            for (resource, amount) in amounts.and_then(Value::as_object).into_iter().flatten() {
                found.insert((name.to_owned(), list.to_owned(), resource.clone()), amount);
            }
        }
    }
    found
}

/// The amounts that an entry lists.
fn places(entry: &Value) -> BTreeSet<Amount> {
    let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut found = BTreeSet::new();
    for (key, container) in members(entry.pointer("/fieldsV1/f:spec/f:containers")) {
        let key: Option<Value> = key
            .strip_prefix("k:")
            .and_then(|key| serde_json::from_str(key).ok());
        let name = key
            .as_ref()
            .and_then(|key| key.get("name")?.as_str())
            .unwrap_or_default();
        for list in LISTS {
            for resource in members(container.pointer(&format!("/f:resources/f:{list}"))).keys() {
                let resource = resource.strip_prefix("f:").unwrap_or(resource);
                found.insert((name.to_owned(), list.to_owned(), resource.to_owned()));
            }
        }
    }
    found
}

/// The same amounts as a server writes them.
fn written(places: &BTreeSet<Amount>) -> Value {
    let mut containers: BTreeMap<String, BTreeMap<String, Map<String, Value>>> = BTreeMap::new();
    for (name, list, resource) in places {
        let lists = containers
            .entry(format!("k:{}", json!({"name": name})))
            .or_default();
        let list = lists.entry(format!("f:{list}")).or_default();
        list.insert(format!("f:{resource}"), json!({}));
    }
    let containers: Map<String, Value> = containers
        .into_iter()
        .map(|(key, lists)| (key, json!({"f:resources": lists})))
        .collect();
    json!({"f:spec": {"f:containers": containers}})
}
