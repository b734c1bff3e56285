//! What is wrong with a definition.

use kube_schema::validate::{Errors, FieldError};
use serde_json::{Value, json};

use super::definition::{is, versions};
use crate::validation::{label_1035, text};

pub(crate) fn validate(definition: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let plural = text(spec.get("names").unwrap_or(&Value::Null), "plural");
    let name = definition
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if name != format!("{plural}.{}", text(spec, "group")) {
        errors.invalid(
            "metadata.name",
            name,
            "must be spec.names.plural+\".\"+spec.group",
        );
    }
    errors.0.extend(validate_spec(definition));
    let stored = definition
        .pointer("/status/storedVersions")
        .and_then(Value::as_array);
    if stored.is_none_or(Vec::is_empty) {
        errors.invalid(
            "status.storedVersions",
            Value::Null,
            "must have at least one stored version",
        );
    }
    errors.0
}

fn validate_spec(definition: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let group = text(spec, "group");
    if group.is_empty() {
        errors.required("spec.group", "");
    } else if !group.contains('.') {
        errors.invalid("spec.group", group, "should be a domain with at least one dot");
    }
    errors.one_of("spec.scope", text(spec, "scope"), &["Cluster", "Namespaced"]);
    preserve(&mut errors, definition, spec);
    version_list(&mut errors, definition, spec);
    names(&mut errors, spec);
    conversion(&mut errors, spec);
    errors.0
}

/// What a change may not do besides.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(validate_spec(new));
    let stored = new.pointer("/status/storedVersions").and_then(Value::as_array);
    for (index, one) in stored.into_iter().flatten().enumerate() {
        let one = one.as_str().unwrap_or_default();
        if !versions(new).any(|version| text(version, "name") == one) {
            let why = format!(
                "missing from spec.versions; {one} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {one} and removes {one} from status.storedVersions"
            );
            errors.invalid(format!("status.storedVersions[{index}]"), one, &why);
        }
    }
    let fixed = [
        ("/spec/group", "spec.group"),
        ("/spec/scope", "spec.scope"),
        ("/spec/names/kind", "spec.names.kind"),
    ];
    for (pointer, path) in fixed {
        let (before, after) = (old.pointer(pointer), new.pointer(pointer));
        if before != after {
            errors.invalid(path, after.cloned().unwrap_or_default(), "field is immutable");
        }
    }
    errors.0
}

fn preserve(errors: &mut Errors, definition: &Value, spec: &Value) {
    if !is(spec, "preserveUnknownFields") {
        return;
    }
    let path = "spec.preserveUnknownFields";
    if versions(definition).any(|version| version.to_string().contains("\"default\":")) {
        errors.invalid(path, true, "must be false in order to use defaults in the schema");
    }
    let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    errors.invalid(path, true, why);
}

fn version_list(errors: &mut Errors, definition: &Value, spec: &Value) {
    for (index, version) in versions(definition).enumerate() {
        let name = text(version, "name");
        if let Some(why) = label_1035(name) {
            errors.invalid(format!("spec.versions[{index}].name"), name, &why);
        }
    }
    let first = versions(definition).next().map(|version| text(version, "name"));
    if let Some((name, why)) = first.and_then(|name| Some((name, label_1035(name)?))) {
        errors.invalid("spec.version", name, &why);
    }
    if versions(definition)
        .filter(|version| is(version, "storage"))
        .count()
        != 1
    {
        let shown = spec.get("versions").map(internal).unwrap_or_default();
        errors.invalid(
            "spec.versions",
            shown,
            "must have exactly one version marked as storage version",
        );
    }
    for (index, version) in versions(definition).enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            errors.required(format!("spec.versions[{index}].schema.openAPIV3Schema"), "");
        } else if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors
                .0
                .extend(kube_schema::structural::bad_patterns(schema, &path));
        }
    }
}

/// Versions as a server prints its own type of them. What all have in common is not printed.
fn internal(versions: &Value) -> Value {
    let list = versions.as_array().into_iter().flatten();
    list.map(|version| {
        json!({"Name": text(version, "name"), "Served": is(version, "served"), "Storage": is(version, "storage"),
            "Deprecated": is(version, "deprecated"), "DeprecationWarning": null, "Schema": null, "Subresources": null,
            "AdditionalPrinterColumns": null, "SelectableFields": null})
    })
    .collect()
}

fn names(errors: &mut Errors, spec: &Value) {
    let names = spec.get("names").unwrap_or(&Value::Null);
    let given = |name: &str| text(names, name).to_owned();
    let mut check = |path: &str, name: &str, prefix: &str| {
        let path = format!("spec.names.{path}");
        let lower = if path.ends_with("plural") {
            name.to_owned()
        } else {
            name.to_lowercase()
        };
        if name.is_empty() {
            errors.required(path, "");
        } else if let Some(why) = label_1035(&lower) {
            errors.invalid(path, name, &format!("{prefix}{why}"));
        }
    };
    let kind = given("kind");
    check("plural", &given("plural"), "");
    let singular = given("singular");
    check(
        "singular",
        if singular.is_empty() { &kind } else { &singular },
        "",
    );
    let mixed = "may have mixed case, but should otherwise match: ";
    check("kind", &kind, mixed);
    let list = given("listKind");
    let default = if kind.is_empty() {
        String::new()
    } else {
        format!("{kind}List")
    };
    check("listKind", if list.is_empty() { &default } else { &list }, mixed);
}

fn conversion(errors: &mut Errors, spec: &Value) {
    let conversion = spec.get("conversion").unwrap_or(&Value::Null);
    errors.one_of(
        "spec.conversion.strategy",
        text(conversion, "strategy"),
        &["None", "Webhook"],
    );
    if text(conversion, "strategy") != "Webhook" {
        return;
    }
    let client = conversion
        .pointer("/webhook/clientConfig")
        .filter(|client| client.is_object());
    let why = match client {
        None => Some("required when strategy is set to Webhook"),
        Some(client) if client.get("url").is_some() == client.get("service").is_some() => {
            Some("exactly one of url or service is required")
        }
        Some(_) => None,
    };
    if let Some(why) = why {
        errors.required("spec.conversion.webhookClientConfig", why);
    }
    let reviews = conversion
        .pointer("/webhook/conversionReviewVersions")
        .and_then(Value::as_array);
    let spoken = |version: &Value| matches!(version.as_str(), Some("v1" | "v1beta1"));
    match reviews {
        Some(reviews) if reviews.iter().any(spoken) => {}
        Some(reviews) if !reviews.is_empty() => {
            let why = "must include at least one of v1, v1beta1";
            errors.invalid("spec.conversion.conversionReviewVersions", reviews.clone(), why);
        }
        _ => errors.required("spec.conversion.conversionReviewVersions", ""),
    }
}
