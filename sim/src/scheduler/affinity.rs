//! Which nodes a pod requires and prefers: its node selector, and the terms of its node affinity.

use serde_json::Value;

use super::node::Labels;
use crate::object::at;

pub(super) fn matches(pod: &Value, name: &str, labels: &Labels) -> bool {
    let selector = at(pod, "/spec/nodeSelector").and_then(Value::as_object);
    let selected = selector
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str());
    let required = at(
        pod,
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
    );
    selected && required.is_none_or(|required| terms(required, name, labels))
}

/// How much a pod prefers a node: the sum of the weights of its preferred terms that hold.
pub(super) fn preference(pod: &Value, name: &str, labels: &Labels) -> i64 {
    let affinity = at(pod, "/spec/affinity/nodeAffinity");
    let preferred =
        affinity.map(|affinity| items(affinity, "preferredDuringSchedulingIgnoredDuringExecution"));
    let weights = preferred.into_iter().flatten().map(|one| {
        let holds = one
            .get("preference")
            .is_some_and(|term| term_holds(term, name, labels));
        let weight = one.get("weight").and_then(Value::as_i64);
        weight.filter(|_| holds).unwrap_or_default()
    });
    weights.fold(0, i64::saturating_add)
}

/// One term must hold.
fn terms(required: &Value, name: &str, labels: &Labels) -> bool {
    items(required, "nodeSelectorTerms").any(|term| term_holds(term, name, labels))
}

/// A term without requirements does not hold.
fn term_holds(term: &Value, name: &str, labels: &Labels) -> bool {
    let empty = items(term, "matchExpressions")
        .chain(items(term, "matchFields"))
        .next()
        .is_none();
    let by_label = |one: &Value| holds(one, labels.get(text(one, "key")).map(String::as_str));
    let by_field = |one: &Value| text(one, "key") == "metadata.name" && holds(one, Some(name));
    !empty && items(term, "matchExpressions").all(by_label) && items(term, "matchFields").all(by_field)
}

fn holds(requirement: &Value, found: Option<&str>) -> bool {
    let among = |value: &str| items(requirement, "values").any(|one| one == value);
    let number = |value: Option<&str>| value.and_then(|text| text.parse::<i64>().ok());
    let bound = number(items(requirement, "values").next().and_then(Value::as_str));
    let compared = number(found).zip(bound);
    match text(requirement, "operator") {
        "In" => found.is_some_and(among),
        "NotIn" => found.is_none_or(|value| !among(value)),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compared.is_some_and(|(found, bound)| found > bound),
        "Lt" => compared.is_some_and(|(found, bound)| found < bound),
        _ => false,
    }
}

fn items<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}
