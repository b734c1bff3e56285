//! Storage classes.

use kube_schema::validate::{Errors, FieldError, qualified_name};
use serde_json::Value;

use super::fill;
use crate::validation::text;

pub(crate) fn default_class(class: &mut Value) {
    fill(class, "reclaimPolicy", "Delete");
    fill(class, "volumeBindingMode", "Immediate");
}

pub(crate) fn validate_class(class: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let provisioner = text(class, "provisioner");
    if provisioner.is_empty() {
        errors.required("provisioner", "");
    } else if let Some(why) = qualified_name(&provisioner.to_lowercase()) {
        errors.invalid("provisioner", provisioner, why);
    }
    let parameters = class.get("parameters").and_then(Value::as_object);
    if parameters.is_some_and(|parameters| parameters.contains_key("")) {
        errors.invalid("parameters", "", "field can not be empty.");
    }
    errors.one_of(
        "reclaimPolicy",
        text(class, "reclaimPolicy"),
        &["Delete", "Retain"],
    );
    let modes = &["Immediate", "WaitForFirstConsumer"];
    errors.one_of("volumeBindingMode", text(class, "volumeBindingMode"), modes);
    errors.0
}

pub(crate) fn validate_class_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(validate_class(new));
    for name in ["parameters", "provisioner", "reclaimPolicy"] {
        if new.get(name) != old.get(name) {
            errors.forbidden(name, &format!("updates to {name} are forbidden."));
        }
    }
    let mode = "volumeBindingMode";
    if new.get(mode) != old.get(mode) {
        errors.invalid(mode, text(new, mode), "field is immutable");
    }
    errors.0
}
