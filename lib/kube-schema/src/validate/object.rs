//! What holds for objects of any kind: their metadata, and label selectors in their specs.

use serde_json::Value;

use super::error::Errors;
use super::json::{items, text};
use super::{FieldError, annotations, labels, names};

const OPERATORS: &[&str] = &["DoesNotExist", "Exists", "In", "NotIn"];

/// Checks the metadata of an object whose name is a DNS subdomain. `path` is its place, such as `metadata`.
pub fn metadata(metadata: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let name = text(metadata, "name");
    if name.is_empty() && text(metadata, "generateName").is_empty() {
        errors.required(format!("{path}.name"), "name or generateName is required");
    }
    if !name.is_empty() && !names::dns_subdomain(name) {
        let detail = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                      and must start and end with an alphanumeric character, and have no more than 253 characters";
        errors.invalid(format!("{path}.name"), name, detail);
    }
    errors.0.extend(labels_and_annotations(metadata, path));
    errors.0
}

/// Checks labels and annotations alone.
pub fn labels_and_annotations(metadata: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    labels(&mut errors, metadata, path);
    annotations(&mut errors, metadata, path);
    errors.0
}

/// Checks the requirements of a label selector.
pub fn selector(selector: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    for (key, value) in selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let path = format!("{path}.matchLabels");
        if let Some(reason) = names::qualified_name(key) {
            errors.invalid(&path, key.as_str(), reason);
        }
        let value = value.as_str().unwrap_or_default();
        if let Some(reason) = names::label_value(value) {
            errors.invalid(path, value, reason);
        }
    }
    for (requirement, path) in items(selector, "matchExpressions", path) {
        self::requirement(&mut errors, requirement, &path);
    }
    errors.0
}

fn requirement(errors: &mut Errors, requirement: &Value, path: &str) {
    let (key, operator) = (text(requirement, "key"), text(requirement, "operator"));
    if let Some(reason) = names::qualified_name(key) {
        errors.invalid(format!("{path}.key"), key, reason);
    }
    if operator.is_empty() {
        errors.required(format!("{path}.operator"), "");
    }
    errors.one_of(format!("{path}.operator"), operator, OPERATORS);
    let count = items(requirement, "values", path).count();
    match operator {
        "In" | "NotIn" if count == 0 => errors.required(
            format!("{path}.values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        "Exists" | "DoesNotExist" if count > 0 => errors.forbidden(
            format!("{path}.values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        _ => {}
    }
    for (value, path) in items(requirement, "values", path) {
        let value = value.as_str().unwrap_or_default();
        if let Some(reason) = names::label_value(value) {
            errors.invalid(path, value, reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(errors: Vec<FieldError>) -> Vec<String> {
        errors.into_iter().map(|error| error.path).collect()
    }

    #[test]
    fn metadata_needs_a_name_and_good_labels() {
        let check = |value: Value| paths(metadata(&value, "metadata"));
        assert!(check(json!({"name": "a.b-c"})).is_empty());
        assert!(check(json!({"generateName": "a-"})).is_empty());
        assert_eq!(check(json!({})), ["metadata.name"]);
        assert_eq!(check(json!({"name": "A"})), ["metadata.name"]);
        assert_eq!(check(json!({"name": "a".repeat(254)})), ["metadata.name"]);
        let bad = json!({"name": "a", "labels": {"k": "a b"}, "annotations": {"/": ""}});
        assert_eq!(check(bad), ["metadata.labels", "metadata.annotations"]);
    }

    #[test]
    fn selectors_need_keys_operators_and_fitting_values() {
        let check = |value: Value| paths(selector(&value, "s"));
        let one = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        assert!(check(json!({"matchLabels": {"a.b/c": "d"}})).is_empty());
        assert!(check(one("a", "In", &["b"])).is_empty());
        assert!(check(one("a", "Exists", &[])).is_empty());
        assert_eq!(check(json!({"matchLabels": {"/": "d"}})), ["s.matchLabels"]);
        assert_eq!(check(json!({"matchLabels": {"a": "-"}})), ["s.matchLabels"]);
        assert_eq!(check(one("", "Exists", &[])), ["s.matchExpressions[0].key"]);
        assert_eq!(check(one("a", "", &[])), ["s.matchExpressions[0].operator"]);
        assert_eq!(check(one("a", "Is", &[])), ["s.matchExpressions[0].operator"]);
        assert_eq!(check(one("a", "NotIn", &[])), ["s.matchExpressions[0].values"]);
        assert_eq!(
            check(one("a", "Exists", &["b"])),
            ["s.matchExpressions[0].values"]
        );
        assert_eq!(
            check(one("a", "In", &["b", "-"])),
            ["s.matchExpressions[0].values[1]"]
        );
    }
}
