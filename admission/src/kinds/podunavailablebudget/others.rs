//! Other budgets for the same pods: by the same workload, or by a selector that overlaps.
//!
//! Overlap is judged as in OpenKruise, which is not exact: selectors that ask for different keys are taken for
//! disjoint, and so are a budget by workload and one by selector.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::meta::LabelSelector;
use kruise_api::podunavailablebudget::KIND;
use kube_schema::validate::Errors;
use serde::Deserialize as _;
use serde_json::Value;

use crate::kinds::{Scope, target};
use crate::lookup::Reader;

/// Refuses a new budget that is in conflict with another one of its namespace; the first conflict is enough. On
/// UPDATE which pods are meant stays.
pub(super) fn check(errors: &mut Errors, object: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    if scope.old.is_some() {
        return;
    }
    let Some(others) = target::others(&KIND, scope, reader) else {
        return;
    };
    let found = |object: &Value| {
        let reference = object.pointer("/spec/targetRef").filter(|one| one.is_object())?;
        let (group, kind) = target::group_kind(reference)?;
        let [_, _, name] = target::parts(reference);
        Some([group, kind, name].map(str::to_owned))
    };
    let own = (found(object), selector(object));
    for other in others {
        let name = target::name_of(other);
        if own.0.is_some() && own.0 == found(other) {
            let detail =
                format!("pub.spec.targetReference is in conflict with other PodUnavailableBudget {name}");
            let value = object.pointer("/spec/targetRef").cloned();
            return errors.invalid("spec.targetReference", value.unwrap_or_default(), &detail);
        }
        if let (Some(one), Some(two)) = (&own.1, selector(other))
            && overlap(one, &two)
        {
            let detail = format!("pub.spec.selector is in conflict with other PodUnavailableBudget {name}");
            let value = object.pointer("/spec/selector").cloned();
            return errors.invalid("spec.selector", value.unwrap_or_default(), &detail);
        }
    }
}

/// What a selector asks of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
}

/// What a budget's selector asks, by label; of several demands of one label the last counts, and one for a value most.
fn selector(object: &Value) -> Option<BTreeMap<String, Asked>> {
    let found = object.pointer("/spec/selector").filter(|one| one.is_object())?;
    let found = LabelSelector::deserialize(found).ok()?;
    let mut asked = BTreeMap::new();
    for one in &found.match_expressions {
        let values = one.values.iter().cloned().collect();
        let demand = match one.operator.as_str() {
            "In" => Asked::In(values),
            "NotIn" => Asked::NotIn(values),
            "Exists" => Asked::Exists,
            "DoesNotExist" => Asked::DoesNotExist,
            _ => continue,
        };
        asked.insert(one.key.clone(), demand);
    }
    for (key, value) in &found.match_labels {
        asked.insert(key.clone(), Asked::In(BTreeSet::from([value.clone()])));
    }
    Some(asked)
}

fn overlap(one: &BTreeMap<String, Asked>, two: &BTreeMap<String, Asked>) -> bool {
    one.len() == two.len()
        && one
            .iter()
            .all(|(key, asked)| two.get(key).is_some_and(|other| agree(asked, other)))
}

/// Can a label be as both ask?
fn agree(one: &Asked, two: &Asked) -> bool {
    match (one, two) {
        (Asked::In(one), Asked::In(two)) => !one.is_disjoint(two),
        (Asked::In(wanted), Asked::NotIn(unwanted)) | (Asked::NotIn(unwanted), Asked::In(wanted)) => {
            !wanted.is_subset(unwanted)
        }
        (Asked::DoesNotExist, Asked::In(_) | Asked::Exists)
        | (Asked::In(_) | Asked::Exists, Asked::DoesNotExist) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Case, case};
    use super::*;

    const BUDGET: Case = case("PodUnavailableBudget", || Value::Null);
    const PATH: &str = "/apis/policy.kruise.io/v1beta1/namespaces/default/podunavailablebudgets";

    fn by(selector: &Value) -> Value {
        json!({"selector": selector, "maxUnavailable": 1})
    }

    fn for_workload(version: &str, name: &str) -> Value {
        json!({"maxUnavailable": 1,
               "targetRef": {"apiVersion": format!("apps/{version}"), "kind": "Deployment", "name": name}})
    }

    /// What is said of a new budget beside another one.
    fn beside(other: &str, stored: &Value, new: &Value) -> Option<String> {
        let mut stored = BUDGET.object("v1beta1", stored);
        stored["metadata"]["name"] = json!(other);
        let seen = [(PATH, json!({"items": [stored]}))];
        BUDGET.seeing(&seen, "CREATE", &BUDGET.object("v1beta1", new), &Value::Null)
    }

    #[test]
    fn two_budgets_for_a_workload_or_for_overlapping_selectors_are_one_too_many() {
        let message = beside(
            "first",
            &for_workload("v1", "web"),
            &for_workload("v1beta1", "web"),
        )
        .unwrap();
        assert!(
            message.contains("spec.targetReference: Invalid")
                && message.contains("PodUnavailableBudget first"),
            "{message}"
        );
        assert_eq!(
            beside("first", &for_workload("v1", "web"), &for_workload("v1", "db")),
            None
        );
        let web = by(&json!({"matchLabels": {"app": "web"}}));
        let message = beside("first", &web, &web).unwrap();
        assert!(
            message.contains("spec.selector: Invalid") && message.contains("PodUnavailableBudget first"),
            "{message}"
        );
        // itself, and what says which pods are meant another way
        assert_eq!(beside("good", &web, &web), None);
        assert_eq!(beside("first", &for_workload("v1", "web"), &web), None);
    }

    #[test]
    fn others_are_not_asked_for_when_a_budget_changes() {
        let web = BUDGET.object("v1beta1", &by(&json!({"matchLabels": {"app": "web"}})));
        assert_eq!(BUDGET.seeing(&[], "UPDATE", &web, &web), None);
    }

    #[test]
    fn selectors_overlap_if_every_label_can_be_as_both_ask() {
        let of = |operator: &str, values: &[&str]| {
            let one = match operator {
                "Exists" | "DoesNotExist" => json!({"key": "a", "operator": operator}),
                _ => json!({"key": "a", "operator": operator, "values": values}),
            };
            selector(&json!({"spec": {"selector": {"matchExpressions": [one]}}})).unwrap()
        };
        for (one, two, expected) in [
            (of("In", &["x", "y"]), of("In", &["y", "z"]), true),
            (of("In", &["x"]), of("In", &["y"]), false),
            (of("In", &["x", "y"]), of("NotIn", &["x"]), true),
            (of("In", &["x"]), of("NotIn", &["x", "y"]), false),
            (of("In", &["x"]), of("Exists", &[]), true),
            (of("In", &["x"]), of("DoesNotExist", &[]), false),
            (of("NotIn", &["x"]), of("NotIn", &["x"]), true),
            (of("NotIn", &["x"]), of("Exists", &[]), true),
            (of("NotIn", &["x"]), of("DoesNotExist", &[]), true),
            (of("Exists", &[]), of("Exists", &[]), true),
            (of("Exists", &[]), of("DoesNotExist", &[]), false),
            (of("DoesNotExist", &[]), of("DoesNotExist", &[]), true),
        ] {
            assert_eq!(overlap(&one, &two), expected, "{one:?} {two:?}");
            assert_eq!(overlap(&two, &one), expected, "{two:?} {one:?}");
        }
        let both = json!({"spec": {"selector": {"matchLabels": {"a": "x"},
            "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}});
        assert_eq!(selector(&both).unwrap(), of("In", &["x"]));
        let more = json!({"spec": {"selector": {"matchLabels": {"a": "x", "b": "y"}}}});
        assert!(!overlap(&selector(&more).unwrap(), &of("In", &["x"])));
    }
}
