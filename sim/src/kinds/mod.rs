//! What is particular to a kind: defaults, what a write may set, what it may change.
//!
//! Plain functions on JSON; [`crate::registry`] names them in the kind's row. There are no handlers here.

pub(crate) mod autoscaler;
pub(crate) mod budget;
pub(crate) mod cluster;
pub(crate) mod config;
pub(crate) mod ephemeral;
pub(crate) mod job;
pub(crate) mod pod;
pub(crate) mod pod_template;
pub(crate) mod resize;
pub(crate) mod service;
pub(crate) mod storage;
pub(crate) mod webhook;
pub(crate) mod workload;

use serde_json::{Map, Value};

/// Sets a member that is absent or `null`.
fn fill(object: &mut Value, name: &str, value: impl Into<Value>) {
    if object.get(name).is_none_or(Value::is_null) {
        set(object, name, value);
    }
}

fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(members) = object {
        members.insert(name.to_owned(), value.into());
    }
}

fn remove(object: &mut Value, name: &str) {
    if let Value::Object(members) = object {
        members.remove(name);
    }
}

/// A member that is an object, made if absent.
fn object<'a>(of: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    fill(of, name, Map::new());
    of.get_mut(name).filter(|member| member.is_object())
}

/// The objects of a list.
fn each<'a>(of: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let items = of.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter(|item| item.is_object())
}

fn items<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Keeps the old value of a top-level member.
pub(crate) fn keep(new: &mut Value, old: &Value, name: &str) {
    match old.get(name) {
        Some(value) => set(new, name, value.clone()),
        None => remove(new, name),
    }
}
