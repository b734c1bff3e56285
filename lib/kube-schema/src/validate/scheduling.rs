//! Where pods may go: node selectors, preferences and tolerations.
//!
//! Values of labels are not looked at: servers differ in whether they are.

use serde_json::Value;

use super::error::Errors;
use super::json::{integer, items, text};
use super::{FieldError, names};

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks one term of a node selector.
pub fn node_selector_term(term: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    for (requirement, path) in items(term, "matchExpressions", path) {
        by_label(&mut errors, requirement, &path);
    }
    for (requirement, path) in items(term, "matchFields", path) {
        by_field(&mut errors, requirement, &path);
    }
    errors.0
}

/// Checks one preference of nodes.
pub fn preferred_term(term: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let weight = integer(term, "weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.invalid(format!("{path}.weight"), weight, "must be in the range 1-100");
    }
    let preference = term.get("preference").unwrap_or(&Value::Null);
    let path = format!("{path}.preference");
    errors.0.extend(node_selector_term(preference, &path));
    errors.0
}

/// Checks one toleration.
pub fn toleration(toleration: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
    if let Some(reason) = names::qualified_name(key).filter(|_| !key.is_empty()) {
        errors.invalid(format!("{path}.key"), key, reason);
    }
    let mut of_operator = |detail: &str| errors.invalid(format!("{path}.operator"), operator, detail);
    match operator {
        "Exists" if !value.is_empty() => of_operator("value must be empty when `operator` is 'Exists'"),
        "Exists" => {}
        _ if key.is_empty() => of_operator(
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
        ),
        "Equal" | "" => {
            if let Some(reason) = names::label_value(value) {
                of_operator(reason);
            }
        }
        // comparisons of newer servers
        "Lt" | "Gt" => {}
        _ => errors.one_of(format!("{path}.operator"), operator, &["Equal", "Exists"]),
    }
    if toleration.get("tolerationSeconds").is_some_and(Value::is_i64) && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid(format!("{path}.effect"), effect, detail);
    }
    errors.one_of(format!("{path}.effect"), effect, EFFECTS);
    errors.0
}

fn by_label(errors: &mut Errors, requirement: &Value, path: &str) {
    let (key, operator) = (text(requirement, "key"), text(requirement, "operator"));
    let (count, values) = (
        items(requirement, "values", path).count(),
        format!("{path}.values"),
    );
    match operator {
        "In" | "NotIn" if count == 0 => {
            errors.required(values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.forbidden(values, detail);
        }
        "Gt" | "Lt" if count != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.required(values, detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.invalid(
            format!("{path}.operator"),
            operator,
            "not a valid selector operator",
        ),
    }
    if let Some(reason) = names::qualified_name(key) {
        errors.invalid(format!("{path}.key"), key, reason);
    }
}

fn by_field(errors: &mut Errors, requirement: &Value, path: &str) {
    let (key, operator) = (text(requirement, "key"), text(requirement, "operator"));
    match operator {
        "In" | "NotIn" if items(requirement, "values", path).count() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.required(format!("{path}.values"), detail);
        }
        "In" | "NotIn" => {}
        _ => errors.invalid(
            format!("{path}.operator"),
            operator,
            "not a valid selector operator",
        ),
    }
    if key != "metadata.name" {
        errors.invalid(format!("{path}.key"), key, "not a valid field selector key");
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
    fn terms_need_keys_operators_and_fitting_values() {
        let check = |key: &str, operator: &str, values: &[&str]| {
            let one = json!({"key": key, "operator": operator, "values": values});
            paths(node_selector_term(&json!({"matchExpressions": [one]}), "t"))
        };
        for (operator, values) in [
            ("In", &["a", "b"][..]),
            ("NotIn", &["a"]),
            ("Exists", &[]),
            ("DoesNotExist", &[]),
            ("Gt", &["1"]),
            ("Lt", &["1"]),
        ] {
            assert!(check("pool", operator, values).is_empty(), "{operator}");
        }
        for (operator, values) in [
            ("In", &[][..]),
            ("NotIn", &[]),
            ("Exists", &["a"]),
            ("DoesNotExist", &["a"]),
            ("Gt", &[]),
            ("Lt", &["1", "2"]),
        ] {
            assert_eq!(check("pool", operator, values), ["t.matchExpressions[0].values"]);
        }
        assert_eq!(check("pool", "Is", &["a"]), ["t.matchExpressions[0].operator"]);
        assert_eq!(check("a b", "Exists", &[]), ["t.matchExpressions[0].key"]);
    }

    #[test]
    fn fields_are_the_name_alone() {
        let check = |key: &str, operator: &str, values: &[&str]| {
            let one = json!({"key": key, "operator": operator, "values": values});
            paths(node_selector_term(&json!({"matchFields": [one]}), "t"))
        };
        assert!(check("metadata.name", "In", &["n"]).is_empty());
        assert_eq!(check("metadata.uid", "In", &["n"]), ["t.matchFields[0].key"]);
        assert_eq!(check("metadata.name", "In", &[]), ["t.matchFields[0].values"]);
        assert_eq!(
            check("metadata.name", "Exists", &[]),
            ["t.matchFields[0].operator"]
        );
    }

    #[test]
    fn preferences_have_a_weight() {
        let check = |weight: i64| {
            let term = json!({"weight": weight, "preference": {"matchExpressions": [{"key": "a"}]}});
            paths(preferred_term(&term, "p"))
        };
        let operator = "p.preference.matchExpressions[0].operator";
        assert_eq!(check(1), [operator]);
        assert_eq!(check(100), [operator]);
        assert_eq!(check(0), ["p.weight", operator]);
        assert_eq!(check(101), ["p.weight", operator]);
    }

    #[test]
    fn tolerations_make_sense() {
        let check = |value: Value| paths(toleration(&value, "t"));
        for good in [
            json!({"operator": "Exists"}),
            json!({"key": "a", "operator": "Equal", "value": "b"}),
            json!({"key": "a", "operator": "Gt", "value": "5"}),
            json!({"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}),
        ] {
            assert!(check(good.clone()).is_empty(), "{good}");
        }
        assert_eq!(check(json!({"value": "b"})), ["t.operator"]);
        assert_eq!(check(json!({"key": "a b", "operator": "Exists"})), ["t.key"]);
        assert_eq!(
            check(json!({"key": "a", "operator": "Exists", "value": "b"})),
            ["t.operator"]
        );
        assert_eq!(check(json!({"key": "a", "value": "b c"})), ["t.operator"]);
        assert_eq!(check(json!({"key": "a", "operator": "Like"})), ["t.operator"]);
        assert_eq!(check(json!({"key": "a", "effect": "Never"})), ["t.effect"]);
        assert_eq!(check(json!({"key": "a", "tolerationSeconds": 5})), ["t.effect"]);
    }
}
