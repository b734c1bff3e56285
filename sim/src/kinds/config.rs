//! Config maps, secrets, claims.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_schema::validate::{Errors, FieldError};
use serde_json::{Value, json};

use super::{fill, items, keep, object, remove, set};
use crate::storage::{amount, requested};

/// Moves `stringData`, which is write-only, to `data`.
pub(crate) fn default_secret(secret: &mut Value) {
    fill(secret, "type", "Opaque");
    let plain = secret.get("stringData").and_then(Value::as_object).cloned();
    for (name, value) in plain.into_iter().flatten() {
        let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
        if let Some(data) = object(secret, "data") {
            set(data, &name, encoded);
        }
    }
    remove(secret, "stringData");
}

fn keys(errors: &mut Errors, of: &Value, member: &str) {
    let entries = of.get(member).and_then(Value::as_object);
    for key in entries.into_iter().flatten().map(|(key, _)| key) {
        let good = !key.is_empty()
            && key.len() <= 253
            && key
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !good {
            let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                       'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
            errors.invalid(format!("{member}[{key}]"), key.as_str(), why);
        }
    }
}

pub(crate) fn validate(of: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    keys(&mut errors, of, "data");
    keys(&mut errors, of, "binaryData");
    errors.0
}

fn immutable(errors: &mut Errors, new: &Value, old: &Value) {
    const WHY: &str = "field is immutable when `immutable` is set";
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    for name in ["immutable", "data", "binaryData"] {
        if new.get(name) != old.get(name) {
            errors.forbidden(name, WHY);
        }
    }
}

pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    immutable(&mut errors, new, old);
    errors.0.extend(validate(new));
    errors.0
}

pub(crate) fn validate_secret_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    if new.get("type") != old.get("type") {
        errors.invalid(
            "type",
            new.get("type").cloned().unwrap_or_default(),
            "field is immutable",
        );
    }
    immutable(&mut errors, new, old);
    errors.0.extend(validate(new));
    errors.0
}

pub(crate) fn default_claim(claim: &mut Value) {
    if let Some(spec) = object(claim, "spec") {
        fill(spec, "volumeMode", "Filesystem");
    }
    if let Some(status) = object(claim, "status") {
        fill(status, "phase", "Pending");
    }
}

pub(crate) fn prepare_claim(claim: &mut Value) {
    set(claim, "status", json!({"phase": "Pending"}));
    // admission: a claim in use is protected
    if let Some(metadata) = claim.get_mut("metadata") {
        const PROTECTION: &str = "kubernetes.io/pvc-protection";
        fill(metadata, "finalizers", json!([]));
        let finalizers = metadata.get_mut("finalizers").and_then(Value::as_array_mut);
        if let Some(list) = finalizers.filter(|list| !list.contains(&PROTECTION.into())) {
            list.push(PROTECTION.into());
        }
    }
}

pub(crate) fn keep_claim_status(new: &mut Value, old: &Value) {
    keep(new, old, "status");
}

pub(crate) fn validate_claim(claim: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let spec = claim.get("spec").unwrap_or(&Value::Null);
    if items(spec, "accessModes").next().is_none() {
        errors.required("spec.accessModes", "at least 1 access mode is required");
    }
    if spec.pointer("/resources/requests/storage").is_none() {
        errors.required("spec.resources[storage]", "");
    }
    errors.0
}

pub(crate) fn validate_claim_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(validate_claim(new));
    let bound = new.pointer("/status/phase") == Some(&"Bound".into());
    let frozen = |claim: &Value| {
        let mut spec = claim.get("spec").cloned().unwrap_or_default();
        if bound {
            remove(&mut spec, "resources");
            remove(&mut spec, "volumeAttributesClassName");
        }
        spec
    };
    let (mut before, after) = (frozen(old), frozen(new));
    // what was left open may be filled in once
    for name in ["volumeName", "storageClassName"] {
        if let (None, Some(value)) = (before.get(name), after.get(name)) {
            set(&mut before, name, value.clone());
        }
    }
    if before != after {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.forbidden("spec", why);
    }
    // a failed expansion may be given up, but no volume shrinks
    if requested(new) < requested(old) && requested(new) <= amount(old, "/status/capacity/storage") {
        let path = "spec.resources.requests.storage";
        errors.forbidden(path, "field can not be less than status.capacity");
    }
    errors.0
}
