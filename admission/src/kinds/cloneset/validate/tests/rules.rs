//! One line per rule: how to break it, and what the error says.

use serde_json::{Value, json};

type Rule = (Vec<(&'static str, Value)>, &'static str);

/// Edits of a good set, and what the error says; `~` stands for where the strategy's parameters are.
pub(super) fn broken() -> Vec<Rule> {
    let mut rules = metadata_and_spec();
    rules.extend(strategy());
    rules.extend(order());
    rules
}

fn one(path: &'static str, value: Value) -> Vec<(&'static str, Value)> {
    vec![(path, value)]
}

#[rustfmt::skip]
fn metadata_and_spec() -> Vec<Rule> {
    vec![
        (one("metadata.name", json!("Web")), "metadata.name: Invalid"),
        (one("metadata.labels", json!({"a b": ""})), "metadata.labels: Invalid"),
        (one("spec.replicas", json!(-1)), "spec.replicas: Invalid value: -1"),
        (one("spec.selector", Value::Null), "spec.selector: Required"),
        (one("spec.selector", json!({})), "spec.selector: Invalid"),
        (one("spec.selector.matchLabels", json!({"app": "-"})), "spec.selector.matchLabels: Invalid"),
        (one("spec.selector.matchLabels", json!({"app": "db"})), "spec.template.metadata.labels: Invalid"),
        (one("spec.template", Value::Null), "spec.template: Required"),
        (one("spec.template.spec.containers.1.image", json!("")), "spec.template.spec.containers[1].image: Required"),
        (one("spec.template.spec.restartPolicy", json!("Never")), "spec.template.spec.restartPolicy: Unsupported value: \"Never\""),
        (one("spec.template.spec.activeDeadlineSeconds", json!(1)), "spec.template.spec.activeDeadlineSeconds: Forbidden"),
        (one("spec.volumeClaimTemplates", json!([{"metadata": {"name": "a b"}}])), "spec.volumeClaimTemplates[0].metadata.name: Invalid"),
        (one("spec.volumeClaimTemplates", json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}])), "spec.volumeClaimTemplates[0].spec.resources.requests.storage: Required"),
        (one("spec.minReadySeconds", json!(-1)), "spec.minReadySeconds: Invalid value: -1"),
        (one("spec.template.spec.containers.0.livenessProbe", json!({"exec": {}, "terminationGracePeriodSeconds": -1})), "containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value: -1"),
        (one("spec.scaleStrategy.podsToDelete", json!(["a", "b", "a"])), "spec.scaleStrategy.podsToDelete[2]: Duplicate value: \"a\""),
        (one("spec.progressDeadlineSeconds", json!(-1)), "spec.progressDeadlineSeconds: Invalid value: -1"),
        (vec![("spec.progressDeadlineSeconds", json!(10)), ("spec.minReadySeconds", json!(10))], "spec.progressDeadlineSeconds: Invalid value: 10: must be greater"),
    ]
}

#[rustfmt::skip]
fn strategy() -> Vec<Rule> {
    vec![
        (one("spec.updateStrategy.type", json!("Sometimes")), "spec.updateStrategy.type: Unsupported value: \"Sometimes\""),
        (one("~.inPlaceUpdateStrategy", json!({"gracePeriodSeconds": -1})), "~.inPlaceUpdateStrategy.gracePeriodSeconds: Invalid value: -1"),
        (one("~.partition", Value::Null), "~.partition: Required"),
        (one("~.partition", json!(-1)), "~.partition: Invalid value: -1"),
        (one("~.partition", json!("-10%")), "~.partition: Invalid value: \"-10%\""),
        (one("~.partition", json!("5")), "~.partition: Invalid value: \"5\""),
        (one("~.maxUnavailable", json!("x%")), "~.maxUnavailable: Invalid value: \"x%\""),
        (one("~.maxSurge", json!("many")), "~.maxSurge: Invalid value: \"many\""),
        (one("~.maxSurge", json!(-1)), "~.maxSurge: Invalid value: -1: must be greater than or equal to 0"),
        (one("~.maxSurge", json!("-5%")), "~.maxSurge: Invalid value: \"-5%\": must be greater than or equal to 0"),
        (vec![("~.maxUnavailable", json!(-1)), ("~.maxSurge", json!(1))], "~.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"),
        (one("spec.scaleStrategy", json!({"maxUnavailable": -1})), "spec.scaleStrategy.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"),
        (one("spec.scaleStrategy", json!({"maxUnavailable": "-5%"})), "spec.scaleStrategy.maxUnavailable: Invalid value: \"-5%\""),
        (one("spec.scaleStrategy", json!({"maxUnavailable": "1"})), "spec.scaleStrategy.maxUnavailable: Invalid value: \"1\""),
        (one("~.maxUnavailable", json!(0)), "~.maxUnavailable: Invalid value: 0: must be at least 1"),
        (one("~.maxUnavailable", Value::Null), "~.maxUnavailable: Invalid value: null: must be at least 1"),
        (one("~.maxUnavailable", json!("0%")), "~.maxUnavailable: Invalid value: \"0%\": must be at least 1"),
    ]
}

#[rustfmt::skip]
fn order() -> Vec<Rule> {
    let labels = json!({"matchLabels": {"a": "b"}});
    let unknown = json!({"matchExpressions": [{"key": "a", "operator": "Is"}]});
    let both = json!({"orderPriority": [{"orderedKey": "a"}], "weightPriority": [{"weight": 1, "matchSelector": labels}]});
    let twice = json!([{"key": "a", "value": "b"}, {"key": "a", "value": "b"}]);
    vec![
        (one("~.priorityStrategy", json!({"orderPriority": [{"orderedKey": ""}]})), "~.priorityStrategy.orderPriority[0].orderedKey: Required"),
        (one("~.priorityStrategy", weight(101, &labels)), "~.priorityStrategy.weightPriority[0].weight: Invalid value: 101"),
        (one("~.priorityStrategy", weight(1, &json!({}))), "~.priorityStrategy.weightPriority[0].matchSelector: Required"),
        (one("~.priorityStrategy", weight(1, &unknown)), "~.priorityStrategy.weightPriority[0].matchSelector.matchExpressions[0].operator: Unsupported"),
        (one("~.priorityStrategy", both), "~.priorityStrategy: Forbidden"),
        (one("~.scatterStrategy", json!([{"key": "", "value": "a"}])), "~.scatterStrategy[0].key: Required"),
        (one("~.scatterStrategy", twice), "~.scatterStrategy[1]: Duplicate value: \"a:b\""),
    ]
}

/// A priority strategy of one weight.
pub(super) fn weight(weight: i32, selector: &Value) -> Value {
    json!({"weightPriority": [{"weight": weight, "matchSelector": selector}]})
}
