//! A selector that cannot be used. Admission refuses it; where it was bypassed, nothing can be decided: no pod
//! would match, so that all were released and made anew, again and again.

use jiff::Timestamp;
use kruise_api::{
    condition::Condition,
    meta::LabelSelector,
    names::{
        conditions::{INVALID_SPEC, STALLED},
        events,
    },
};
use serde_json::Value;

use super::conditions;
use crate::plan::EventNote;

/// Why a workload's selector, or the template whose pods it has to match, is of no use.
pub fn selector(selector: &LabelSelector, template: &Value) -> Option<String> {
    let value = serde_json::to_value(selector).unwrap_or_default();
    let found = kube_schema::validate::selector(&value, "spec.selector");
    if let Some(error) = found.first() {
        return Some(format!("the selector cannot be read: {error}"));
    }
    let labels = template.pointer("/metadata/labels");
    // Go reads null as the empty text.
    let label = |key: &str| match labels?.get(key)? {
        Value::Null => Some(""),
        label => label.as_str(),
    };
    (!selector.matches_by(label)).then(|| "the selector does not match the labels of the template".into())
}

/// Reports that nothing is done: the condition `Stalled`, which is removed once the specification is good, and an
/// event.
pub fn report(all: &mut Vec<Condition>, problem: &str, now: Timestamp) -> EventNote {
    let same = |condition: &Condition| condition.reason == INVALID_SPEC && condition.message == problem;
    if !conditions::get(all, STALLED).is_some_and(same) {
        conditions::set(all, STALLED, ("True", INVALID_SPEC), problem.to_owned(), now);
    }
    EventNote::new(&events::INVALID_SPEC, problem)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(selector: Value, labels: &Value) -> Option<String> {
        let selector = serde_json::from_value(selector).unwrap();
        super::selector(&selector, &json!({"metadata": {"labels": labels}}))
    }

    #[test]
    fn requirements_that_go_cannot_read_are_found() {
        let labels = json!({"app": "web"});
        let requirement = |operator: &str, values: Value| {
            let one = json!({"key": "app", "operator": operator, "values": values});
            problem(json!({"matchExpressions": [one]}), &labels)
        };
        assert_eq!(requirement("In", json!(["web"])), None);
        assert_eq!(requirement("Exists", json!([])), None);
        for (operator, values) in [
            ("Is", json!(["web"])),
            ("", json!(["web"])),
            ("In", json!([])),
            ("NotIn", json!([])),
            ("Exists", json!(["web"])),
        ] {
            let text = requirement(operator, values).unwrap();
            assert!(
                text.starts_with("the selector cannot be read: spec.selector."),
                "{text}"
            );
        }
    }

    #[test]
    fn a_template_whose_pods_would_be_released_at_once_is_found() {
        let selector = json!({"matchLabels": {"app": "web", "tier": ""}});
        assert_eq!(
            problem(selector.clone(), &json!({"app": "web", "tier": null})),
            None
        );
        for labels in [
            json!({"app": "web"}),
            json!({"app": "api", "tier": ""}),
            Value::Null,
        ] {
            assert!(problem(selector.clone(), &labels).is_some(), "{labels}");
        }
    }
}
