//! Disruption budgets.

use kube_schema::validate::{Errors, FieldError};
use serde_json::{Value, json};

use super::set;

/// Budgets are satisfied until a controller has counted.
pub(crate) fn reset(budget: &mut Value) {
    let status =
        json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
    set(budget, "status", status);
}

pub(crate) fn validate(budget: &Value) -> Vec<FieldError> {
    const POLICIES: &[&str] = &["AlwaysAllow", "IfHealthyBudget"];
    let mut errors = Errors::default();
    let spec = budget.get("spec").unwrap_or(&Value::Null);
    let bound = |name: &str| spec.get(name).filter(|value| !value.is_null());
    if bound("minAvailable").is_some() && bound("maxUnavailable").is_some() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.invalid("spec", spec.clone(), why);
    }
    for name in ["minAvailable", "maxUnavailable"] {
        if let Some(value) = bound(name) {
            check_bound(&mut errors, &format!("spec.{name}"), value);
        }
    }
    if let Some(selector) = bound("selector") {
        let found = kube_schema::validate::selector(selector, "spec.selector");
        errors.0.extend(found);
    }
    let policy = spec.get("unhealthyPodEvictionPolicy").and_then(Value::as_str);
    errors.one_of(
        "spec.unhealthyPodEvictionPolicy",
        policy.unwrap_or_default(),
        POLICIES,
    );
    errors.0
}

pub(crate) fn validate_update(new: &Value, _old: &Value) -> Vec<FieldError> {
    validate(new)
}

/// A bound is a number of pods, or their share in percent.
fn check_bound(errors: &mut Errors, path: &str, value: &Value) {
    if value.as_i64().is_some_and(|count| count < 0) {
        errors.invalid(path, value.clone(), "must be greater than or equal to 0");
    }
    let Some(text) = value.as_str() else {
        return;
    };
    let digits = text.strip_suffix('%').unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                   regex used for validation is '[0-9]+%')";
        errors.invalid(path, text, why);
    } else if digits.parse::<i64>().map_or(true, |share| share > 100) {
        errors.invalid(path, text, "must not be greater than 100%");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(spec: &Value) -> Vec<String> {
        let errors = validate(&json!({"spec": spec}));
        errors
            .into_iter()
            .map(|error| format!("{}: {}", error.path, error.detail))
            .collect()
    }

    #[test]
    fn a_bound_is_a_number_or_a_share_of_at_most_all() {
        for good in [json!(0), json!("0%"), json!("100%"), json!(2_147_483_647)] {
            assert_eq!(faults(&json!({"minAvailable": good})), [""; 0]);
            assert_eq!(faults(&json!({"maxUnavailable": good})), [""; 0]);
        }
        for (bad, why) in [
            (json!(-1), "must be greater than or equal to 0"),
            (json!("101%"), "must not be greater than 100%"),
            (json!("9223372036854775807%"), "must not be greater than 100%"),
            (json!("99999999999999999999%"), "must not be greater than 100%"),
            (json!("1"), "a valid percent string"),
            (json!("%"), "a valid percent string"),
            (json!("-1%"), "a valid percent string"),
            (json!("x%"), "a valid percent string"),
        ] {
            let found = faults(&json!({"maxUnavailable": bad}));
            assert_eq!(found.len(), 1, "{bad}: {found:?}");
            assert!(
                found[0].starts_with(&format!("spec.maxUnavailable: {why}")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn there_is_one_bound_and_a_known_policy() {
        let found = faults(&json!({"minAvailable": 1, "maxUnavailable": 1}));
        assert_eq!(
            found,
            ["spec: minAvailable and maxUnavailable cannot be both set"]
        );
        assert_eq!(
            faults(&json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"})),
            [""; 0]
        );
        assert_eq!(faults(&json!({"unhealthyPodEvictionPolicy": "Never"})).len(), 1);
    }
}
