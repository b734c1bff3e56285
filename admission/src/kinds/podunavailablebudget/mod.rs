//! PodUnavailableBudgets: one way to say which pods, one way to say how many, and the pods stay the same.
//!
//! | Field | Rule |
//! |---|---|
//! | `selector`, `targetRef` | one of them; well formed, complete, not empty; neither changes |
//! | `maxUnavailable`, `minAvailable` | one of them; a count or a percentage, 0 to 100 |
//! | `protectOperations`, and its annotation in `v1alpha1` | known |
//! | `ignoredPodSelector` | well formed, not empty |
//! | annotation of `protectTotalReplicas` | a number, the same as the field |
//! | a new budget | one of the gates for budgets is on |
//! | a new budget | no other one of the namespace is for the same workload, or has a selector that overlaps: [`others`] |

mod others;

use go_compat::IntOrString;
use kruise_api::convert::OLDER;
use kruise_api::meta::LabelSelector;
use kruise_api::names::podunavailablebudget::{PROTECT_OPERATIONS, PROTECT_TOTAL_REPLICAS};
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::Value;

use super::{KindWebhooks, Scope, target};
use crate::disruption::{EVICTIONS, Evictions};
use crate::json::{integer, items, present, text};
use crate::pod::sidecars::Reach;
use crate::widening::PODS_OF_SETS;
use crate::widening::{StoredSoon, Widening};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    validating: Some("vpodunavailablebudget.kb.io"),
    codes: (400, 400),
    newest: true,
    rules,
    changes,
    others: others::check,
    widens,
    may_widen: true,
    ..KindWebhooks::of(&kruise_api::podunavailablebudget::KIND)
};

/// Webhooks must be called for the pods of a new budget, and for evictions in its namespace. Which pods are meant
/// does not change.
fn widens(budget: &Value, scope: &Scope<'_>) -> Vec<Widening> {
    if scope.old.is_some() {
        return Vec::new();
    }
    let Ok(mut budget) = PodUnavailableBudget::from_value(budget.clone()) else {
        return Vec::new();
    };
    scope.namespace.clone_into(&mut budget.metadata.namespace);
    let object = StoredSoon::of(scope.kind, &budget.metadata);
    let pods =
        Reach::of_budget(&budget).map(|reach| Widening::of_pods(PODS_OF_SETS, object.clone(), [reach]));
    let evictions = scope.options.budgets.deletions.then(|| {
        let reach = Evictions::in_namespace(&budget.metadata.namespace);
        Widening::of_evictions(EVICTIONS, object.clone(), reach)
    });
    pods.into_iter().chain(evictions).collect()
}

const OPERATIONS: &[&str] = &["DELETE", "UPDATE", "EVICT", "RESIZE"];
/// How errors name the two ways to say which pods are meant.
const PODS: &str = "spec.selector, targetRef";
/// How errors name the two ways to say how many.
const COUNTS: &str = "spec.maxUnavailable, minAvailable";

fn rules(errors: &mut Errors, object: &Value, scope: &Scope<'_>) {
    annotations(errors, object, scope.version);
    if !scope.options.has_budgets() {
        let detail = "needs feature gate PodUnavailableBudgetDeleteGate or PodUnavailableBudgetUpdateGate";
        errors.forbidden("spec", detail);
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match (present(spec, "selector"), present(spec, "targetRef")) {
        (None, None) => errors.required(PODS, "no selector or targetRef defined in PodUnavailableBudget"),
        (Some(_), Some(_)) => errors.required(PODS, "selector and targetRef are mutually exclusive"),
        (Some(selector), None) => {
            let detail = "empty selector is not valid for PodUnavailableBudget.";
            pods(errors, selector, "spec.selector", detail);
        }
        (None, Some(found)) => {
            target::complete(
                errors,
                found,
                "empty targetRef is not valid for PodUnavailableBudget",
            );
        }
    }
    match (present(spec, "maxUnavailable"), present(spec, "minAvailable")) {
        (None, None) => {
            let detail = "no maxUnavailable or minAvailable defined in PodUnavailableBudget";
            errors.required(COUNTS, detail);
        }
        (Some(_), Some(_)) => {
            errors.required(COUNTS, "maxUnavailable and minAvailable are mutually exclusive");
        }
        (Some(count), None) => amount(errors, count, "spec.maxUnavailable"),
        (None, Some(count)) => amount(errors, count, "spec.minAvailable"),
    }
    for (index, operation) in items(spec, "protectOperations").iter().enumerate() {
        let operation = operation.as_str().unwrap_or_default();
        known(errors, operation, &format!("spec.protectOperations[{index}]"));
    }
    if let Some(selector) = present(spec, "ignoredPodSelector") {
        let detail = "empty ignoredPodSelector is not valid for PodUnavailableBudget";
        pods(errors, selector, "spec.ignoredPodSelector", detail);
    }
}

/// What `v1alpha1` says by annotations. Operations are read from them in that version only.
fn annotations(errors: &mut Errors, object: &Value, version: &str) {
    let found = object.pointer("/metadata/annotations").unwrap_or(&Value::Null);
    let path = |name: &str| format!("metadata.annotations[{name}]");
    if let Some(total) = present(found, PROTECT_TOTAL_REPLICAS) {
        let total = total.as_str().unwrap_or_default();
        let field = object
            .get("spec")
            .and_then(|spec| integer(spec, "protectTotalReplicas"));
        let path = path(PROTECT_TOTAL_REPLICAS);
        if total.parse::<i32>().is_err() {
            errors.invalid(path, total, "must be a valid int32");
        } else if field.is_some_and(|field| field.to_string() != total) {
            let detail = "must match spec.protectTotalReplicas when both are set";
            errors.invalid(path, total, detail);
        }
    }
    if version == OLDER {
        let names = text(found, PROTECT_OPERATIONS).split(',').map(str::trim);
        for name in names.filter(|name| !name.is_empty()) {
            known(errors, name, &path(PROTECT_OPERATIONS));
        }
    }
}

fn known(errors: &mut Errors, operation: &str, path: &str) {
    if !OPERATIONS.contains(&operation) {
        errors.add(path, validate::Kind::NotSupported(OPERATIONS), operation, "");
    }
}

/// A selector that selects some pods and not all.
fn pods(errors: &mut Errors, selector: &Value, path: &str, if_empty: &str) {
    let found = validate::selector(selector, path);
    if found.is_empty() && LabelSelector::deserialize(selector).is_ok_and(|one| one.is_empty()) {
        errors.invalid(path, selector.clone(), if_empty);
    }
    errors.0.extend(found);
}

/// A count, not negative, or a percentage of at most a hundred.
fn amount(errors: &mut Errors, value: &Value, path: &str) {
    let percent = |text: &str| {
        let digits = text.strip_suffix('%')?;
        let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
        // what is too long for a number is more than a hundred
        plain.then(|| digits.parse::<u32>().unwrap_or(u32::MAX))
    };
    let detail = match IntOrString::deserialize(value) {
        Ok(IntOrString::Int(0..)) => return,
        Ok(IntOrString::Int(_)) => "must be greater than or equal to 0",
        Ok(IntOrString::String(text)) => match percent(&text) {
            Some(0..=100) => return,
            Some(_) => "must not be greater than 100%",
            None => {
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                 regex used for validation is '[0-9]+%')"
            }
        },
        Err(_) => "must be an integer or percentage (e.g '5%%')",
    };
    errors.invalid(path, value.clone(), detail);
}

/// Which pods are meant stays, to the letter.
fn changes(errors: &mut Errors, new: &Value, old: &Value, _: &Scope<'_>) {
    let selector = |object: &Value| LabelSelector::deserialize(object.pointer("/spec/selector")?).ok();
    let target = |object: &Value| {
        let found = object.pointer("/spec/targetRef").filter(|one| one.is_object());
        found.map(|found| target::parts(found).map(str::to_owned))
    };
    if selector(new) != selector(old) || target(new) != target(old) {
        errors.required(PODS, "selector and targetRef cannot be modified");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Case, case, put};
    use super::*;

    const BUDGET: Case = case("PodUnavailableBudget", good);

    fn good() -> Value {
        json!({
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"},
            "maxUnavailable": "20%",
            "newerThanUs": true,
        })
    }

    #[test]
    fn each_broken_rule_is_refused_with_its_field() {
        let labels = json!({"matchLabels": {"app": "web"}});
        BUDGET.each_is_refused(&[
            ("targetRef", Value::Null, "spec.selector, targetRef: Required"),
            ("selector", labels, "spec.selector, targetRef: Required"),
            ("targetRef.name", json!(""), "spec.targetRef: Invalid"),
            ("targetRef.apiVersion", json!("a/b/c"), "spec.targetRef: Invalid"),
            (
                "maxUnavailable",
                Value::Null,
                "spec.maxUnavailable, minAvailable: Required",
            ),
            (
                "minAvailable",
                json!(1),
                "spec.maxUnavailable, minAvailable: Required",
            ),
            ("maxUnavailable", json!("5"), "spec.maxUnavailable: Invalid"),
            ("maxUnavailable", json!(-1), "spec.maxUnavailable: Invalid"),
            ("maxUnavailable", json!("101%"), "must not be greater than 100%"),
            (
                "maxUnavailable",
                json!("99999999999%"),
                "must not be greater than 100%",
            ),
            (
                "protectOperations",
                json!(["DELETE", "PATCH"]),
                "spec.protectOperations[1]: Unsupported",
            ),
            (
                "ignoredPodSelector",
                json!({}),
                "spec.ignoredPodSelector: Invalid",
            ),
            (
                "ignoredPodSelector",
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "spec.ignoredPodSelector.matchExpressions[0].values: Required",
            ),
        ]);
    }

    #[test]
    fn selectors_and_counts_that_make_sense_pass() {
        for (path, value) in [
            ("maxUnavailable", json!(0)),
            ("maxUnavailable", json!("0%")),
            ("maxUnavailable", json!("100%")),
            (
                "protectOperations",
                json!(["DELETE", "UPDATE", "EVICT", "RESIZE"]),
            ),
            ("protectTotalReplicas", json!(5)),
        ] {
            let mut spec = good();
            put(&mut spec, path, &value);
            assert_eq!(BUDGET.refused("v1beta1", &spec), None, "{path} = {value}");
        }
        let by_selector = |selector: Value| json!({"selector": selector, "minAvailable": 2});
        let labels = json!({"matchLabels": {"app": "web"}});
        assert_eq!(BUDGET.refused("v1alpha1", &by_selector(labels)), None);
        let message = BUDGET.refused("v1alpha1", &by_selector(json!({}))).unwrap();
        assert!(message.contains("spec.selector: Invalid"), "{message}");
    }

    #[test]
    fn annotations_say_what_the_older_version_has_no_fields_for() {
        let refused = |version: &str, annotation: &str, text: &str, total: Value| {
            let mut object = BUDGET.object(version, &good());
            object["metadata"]["annotations"] = json!({annotation: text});
            if !total.is_null() {
                object["spec"]["protectTotalReplicas"] = total;
            }
            BUDGET.refusal("CREATE", &object, &Value::Null)
        };
        let total = PROTECT_TOTAL_REPLICAS;
        assert_eq!(refused("v1alpha1", total, "5", Value::Null), None);
        assert_eq!(refused("v1beta1", total, "5", json!(5)), None);
        let (code, message) = refused("v1alpha1", total, "five", Value::Null).unwrap();
        assert_eq!(code, 400);
        assert!(
            message.contains(&format!("metadata.annotations[{total}]: Invalid")),
            "{message}"
        );
        assert!(
            refused("v1beta1", total, "05", json!(5))
                .unwrap()
                .1
                .contains("must match")
        );
        let operations = PROTECT_OPERATIONS;
        assert_eq!(
            refused("v1alpha1", operations, "DELETE, EVICT", Value::Null),
            None
        );
        assert_eq!(refused("v1beta1", operations, "NONE", Value::Null), None);
        let (_, message) = refused("v1alpha1", operations, "DELETE,NONE", Value::Null).unwrap();
        assert!(
            message.contains(&format!("metadata.annotations[{operations}]")),
            "{message}"
        );
    }

    #[test]
    fn without_a_gate_there_are_no_new_budgets() {
        let mut off = BUDGET;
        off.options.budgets.deletions = false;
        let message = off.refused("v1beta1", &good()).unwrap();
        assert!(message.contains("PodUnavailableBudgetDeleteGate"), "{message}");
        assert_eq!(off.update_refused(&good(), &good()), None);
    }

    #[test]
    fn which_pods_are_meant_stays() {
        let mut other = good();
        for (path, value) in [
            ("maxUnavailable", json!(3)),
            ("protectOperations", json!(["DELETE"])),
        ] {
            put(&mut other, path, &value);
        }
        assert_eq!(BUDGET.update_refused(&good(), &other), None);
        put(
            &mut other,
            "targetRef.apiVersion",
            &json!("apps.kruise.io/v1alpha1"),
        );
        let message = BUDGET.update_refused(&good(), &other).unwrap();
        assert!(
            message.contains("spec.selector, targetRef: Required"),
            "{message}"
        );
        let by = |app: &str| json!({"selector": {"matchLabels": {"app": app}}, "minAvailable": 2});
        assert!(BUDGET.update_refused(&by("a"), &by("b")).is_some());
        let mut same = by("a");
        same["selector"]["matchExpressions"] = json!([]);
        assert_eq!(BUDGET.update_refused(&by("a"), &same), None);
    }
}
