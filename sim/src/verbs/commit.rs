//! The only place where verbs change the store.

use serde_json::Value;

use crate::api::{Api, Call};
use crate::object::set_metadata;
use crate::registry::Resource;
use crate::store::{Head, Key};

/// Stores an object and returns it as the request's version reads it. A dry run only returns it.
pub(super) fn put(api: &mut Api, call: &Call<'_>, key: Key, mut object: Value) -> Value {
    if call.dry_run {
        return object;
    }
    stamp(&mut object, api.store.next_revision());
    write(api, &call.resource, key, &object);
    if call.resource.id.plural.as_ref() == "customresourcedefinitions" {
        api.definition_changed(&object, call.now);
    }
    object
}

/// Removes an object; returns its last state.
pub(super) fn remove(api: &mut Api, call: &Call<'_>, key: &Key, mut object: Value) -> Value {
    if call.dry_run {
        return object;
    }
    stamp(&mut object, api.store.next_revision());
    let text = text(&call.resource, &object);
    api.store.remove(&call.resource.id, key, text);
    if call.resource.id.plural.as_ref() == "customresourcedefinitions" {
        api.definition_removed(&object);
    }
    object
}

fn stamp(object: &mut Value, revision: u64) {
    set_metadata(object, "resourceVersion", revision.to_string().into());
}

/// The text that is stored: the object in its storage version.
fn text(resource: &Resource, object: &Value) -> Vec<u8> {
    let stored = resource.api_version(&resource.storage);
    if object.get("apiVersion") == Some(&stored.as_str().into()) {
        return object.to_string().into_bytes();
    }
    let mut object = object.clone();
    if let Value::Object(members) = &mut object {
        members.insert("apiVersion".into(), stored.into());
    }
    object.to_string().into_bytes()
}

/// Writes an object whose metadata already holds the next revision.
pub(super) fn write(api: &mut Api, resource: &Resource, key: Key, object: &Value) {
    let head = Head::of(object, resource.traits.fields.iter().map(|field| field.pointer));
    let text = text(resource, object);
    api.store.put(&resource.id, key, head, text);
}
