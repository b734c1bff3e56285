//! Differences of `v1alpha1`: one namespace is named by a field, and the custom version is a label.

use serde_json::{Value, json};

use crate::convert::{
    Rule,
    path::{get, set, take},
};
use crate::names;

/// Differences between the versions.
pub const RULES: &[Rule] = &[
    Rule::Special {
        newer: namespace_to_selector,
        older: |_| {},
    },
    Rule::Special {
        newer: label_to_field,
        older: field_to_label,
    },
];

/// A named namespace wins over a selector.
fn namespace_to_selector(object: &mut Value) {
    let Some(Value::String(name)) = take(object, &["spec", "namespace"]) else {
        return;
    };
    if !name.is_empty() {
        let selector = json!({"matchLabels": {names::sidecarset::NAMESPACE_NAME: name}});
        set(object, &["spec", "namespaceSelector"], selector);
    }
}

const LABEL: [&str; 3] = ["metadata", "labels", names::sidecarset::CUSTOM_VERSION];

fn label_to_field(object: &mut Value) {
    if object.get("spec").is_some_and(Value::is_object)
        && let Some(version) = take(object, &LABEL)
    {
        set(object, &["spec", "customVersion"], version);
    }
}

fn field_to_label(object: &mut Value) {
    if get(object, &["spec", "customVersion"]).is_some_and(Value::is_string)
        && let Some(version) = take(object, &["spec", "customVersion"])
    {
        set(object, &LABEL, version);
    }
}
