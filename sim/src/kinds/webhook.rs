//! Webhook configurations.

use kube_schema::validate::{Errors, FieldError};
use serde_json::{Value, json};

use super::{each, fill, items};

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
    }
    errors.0
}
