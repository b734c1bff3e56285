//! Webhook configurations.

use std::collections::BTreeSet;

use kube_schema::validate::{Errors, FieldError, Kind};
use serde_json::{Value, json};

use super::{each, fill, items};
use crate::cel::Expression;
use crate::validation::text;

fn default(configuration: &mut Value) {
    for webhook in each(configuration, "webhooks") {
        fill(webhook, "failurePolicy", "Fail");
        fill(webhook, "matchPolicy", "Equivalent");
        fill(webhook, "namespaceSelector", json!({}));
        fill(webhook, "objectSelector", json!({}));
        fill(webhook, "timeoutSeconds", 10);
        each(webhook, "rules").for_each(|rule| fill(rule, "scope", "*"));
        if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
            fill(service, "port", 443);
        }
    }
}

pub(crate) fn default_mutating(configuration: &mut Value) {
    default(configuration);
    each(configuration, "webhooks").for_each(|webhook| fill(webhook, "reinvocationPolicy", "Never"));
}

pub(crate) fn default_validating(configuration: &mut Value) {
    default(configuration);
}

/// A condition that is not understood is refused: it must not be ignored later.
fn conditions(errors: &mut Errors, webhook: &Value, path: &str) {
    let mut names = BTreeSet::new();
    for (index, condition) in items(webhook, "matchConditions").enumerate() {
        let path = format!("{path}.matchConditions[{index}]");
        let (name, expression) = (text(condition, "name"), text(condition, "expression"));
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else if !names.insert(name) {
            errors.add(format!("{path}.name"), Kind::Duplicate, name, "");
        }
        if expression.trim().is_empty() {
            errors.required(format!("{path}.expression"), "");
        } else if let Err(why) = Expression::parse(expression) {
            let why = format!("compilation failed: {why}");
            errors.invalid(format!("{path}.expression"), expression, &why);
        }
    }
}

pub(crate) fn validate(configuration: &Value) -> Vec<FieldError> {
    const EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
    let mut errors = Errors::default();
    for (index, webhook) in items(configuration, "webhooks").enumerate() {
        let path = format!("webhooks[{index}]");
        match webhook.get("sideEffects").and_then(Value::as_str) {
            None => errors.required(
                format!("{path}.sideEffects"),
                "must specify one of None, NoneOnDryRun",
            ),
            Some(effects) => errors.one_of(format!("{path}.sideEffects"), effects, EFFECTS),
        }
        if items(webhook, "admissionReviewVersions").next().is_none() {
            let why = "must specify one of v1, v1beta1";
            errors.required(format!("{path}.admissionReviewVersions"), why);
        }
        conditions(&mut errors, webhook, &path);
    }
    errors.0
}
