//! Namespaces, nodes, leases, events, definitions.

use kube_schema::validate::{Errors, FieldError};
use serde_json::{Value, json};

use super::{fill, keep, object, set};
use crate::object::at;
use crate::validation;

/// A namespace is labelled with its name.
pub(crate) fn default_namespace(namespace: &mut Value) {
    let name = at(namespace, "/metadata/name").cloned().unwrap_or_default();
    if name.as_str().is_none_or(str::is_empty) {
        return;
    }
    if let Some(labels) = object(namespace, "metadata").and_then(|metadata| object(metadata, "labels")) {
        set(labels, "kubernetes.io/metadata.name", name);
    }
    if let Some(status) = object(namespace, "status") {
        fill(status, "phase", "Active");
    }
}

pub(crate) fn prepare_namespace(namespace: &mut Value) {
    set(namespace, "status", json!({"phase": "Active"}));
    set(namespace, "spec", json!({"finalizers": ["kubernetes"]}));
}

pub(crate) fn keep_namespace(new: &mut Value, old: &Value) {
    keep(new, old, "spec");
    keep(new, old, "status");
}

/// A namespace's phase shows whether it is being deleted.
pub(crate) fn validate_namespace_status(new: &Value, _old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let phase = at(new, "/status/phase")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let deleting = at(new, "/metadata/deletionTimestamp").is_some();
    if deleting && phase != "Terminating" {
        let why = "may only be 'Terminating' if `deletionTimestamp` is not empty";
        errors.invalid("status.Phase", phase, why);
    } else if !deleting && phase != "Active" {
        let why = "may only be 'Active' if `deletionTimestamp` is empty";
        errors.invalid("status.Phase", phase, why);
    }
    errors.0
}

pub(crate) fn default_node(node: &mut Value) {
    if let Some(status) = node.get_mut("status")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        fill(status, "allocatable", capacity);
    }
}

/// Admission: a node starts as not ready.
pub(crate) fn prepare_node(node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let Some(spec) = object(node, "spec") else { return };
    fill(spec, "taints", json!([]));
    if let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut)
        && !taints
            .iter()
            .any(|taint| taint.get("key") == Some(&NOT_READY.into()))
    {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

pub(crate) fn keep_status(new: &mut Value, old: &Value) {
    keep(new, old, "status");
}

/// A rule must allow something.
pub(crate) fn validate_role(role: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let rules = role.get("rules").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let verbs = rule.get("verbs").and_then(Value::as_array);
        if verbs.is_none_or(Vec::is_empty) {
            errors.required(
                format!("rules[{index}].verbs"),
                "verbs must contain at least one value",
            );
        }
    }
    errors.0
}

/// The server validates a changed role twice.
pub(crate) fn validate_role_update(new: &Value, _old: &Value) -> Vec<FieldError> {
    let mut errors = validate_role(new);
    errors.extend(validate_role(new));
    errors
}

pub(crate) fn validate_runtime_class(class: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let handler = class.get("handler").and_then(Value::as_str).unwrap_or_default();
    if let Some(why) = validation::label(handler) {
        errors.invalid("handler", handler, &why);
    }
    errors.0
}

pub(crate) fn validate_runtime_class_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(validate_runtime_class(new));
    if new.get("handler") != old.get("handler") {
        let value = new.get("handler").cloned().unwrap_or_default();
        errors.invalid("handler", value, "field is immutable");
    }
    errors.0
}

pub(crate) fn validate_lease(lease: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let spec = lease.get("spec").unwrap_or(&Value::Null);
    for (name, least) in [("leaseDurationSeconds", 1), ("leaseTransitions", 0)] {
        if let Some(number) = spec
            .get(name)
            .and_then(Value::as_i64)
            .filter(|number| *number < least)
        {
            let why = if least == 1 {
                "must be greater than 0"
            } else {
                "must be greater than or equal to 0"
            };
            errors.invalid(format!("spec.{name}"), number, why);
        }
    }
    errors.0
}

pub(crate) fn validate_event(event: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let namespace = at(event, "/metadata/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let involved = at(event, "/involvedObject/namespace").and_then(Value::as_str);
    let expected = involved.unwrap_or("default");
    if namespace != expected {
        errors.invalid(
            "involvedObject.namespace",
            involved.unwrap_or_default(),
            "does not match event.namespace",
        );
    }
    errors.0
}
