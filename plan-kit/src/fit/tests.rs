use kruise_views::NodeView;
use serde_json::{Value, json};

use super::{Fit, Obstacle, Placement, for_daemons};

fn node(labels: Value, taints: Value) -> NodeView {
    let node = json!({"metadata": {"name": "n1", "labels": labels}, "spec": {"taints": taints}});
    serde_json::from_value(node).unwrap()
}

fn placement(spec: &Value) -> Placement {
    Placement::of(&json!({"spec": spec}))
}

fn with_terms(terms: Value) -> Value {
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
}

#[test]
fn a_template_that_says_nothing_runs_everywhere_but_where_taints_or_a_cordon_keep_it_off() {
    let plain =
        placement(&json!({"nodeSelector": null, "affinity": null, "nodeName": "", "tolerations": null}));
    assert_eq!(plain.fit(&node(json!({}), json!([]))), Fit::Runs);
    let cordoned = NodeView {
        unschedulable: true,
        ..node(json!({}), json!([]))
    };
    assert_eq!(plain.fit(&cordoned), Fit::Stays(Obstacle::Cordoned));
    assert_eq!(
        Placement::new(&Value::Null, &for_daemons(&Value::Null)).fit(&cordoned),
        Fit::Runs
    );
}

#[test]
fn a_named_node_is_the_only_one() {
    let here = placement(&json!({"nodeName": "n1"}));
    let there = placement(&json!({"nodeName": "n2"}));
    let node = node(json!({}), json!([]));
    assert_eq!(here.fit(&node), Fit::Runs);
    assert_eq!(there.fit(&node), Fit::Refused(Obstacle::Pinned));
    assert_eq!(
        there.describe(Obstacle::Pinned, &node),
        "is not node n2, which the template names"
    );
}

#[test]
fn every_label_of_the_selector_is_needed() {
    let selector = placement(&json!({"nodeSelector": {"disk": "ssd", "zone": "a"}}));
    let fit = |labels: Value| {
        let node = node(labels, json!([]));
        let fit = selector.fit(&node);
        fit.obstacle().map(|obstacle| selector.describe(obstacle, &node))
    };
    assert_eq!(fit(json!({"disk": "ssd", "zone": "a", "more": "x"})), None);
    assert_eq!(
        fit(json!({"disk": "ssd"})).unwrap(),
        "lacks label zone=a, which nodeSelector asks for"
    );
    assert_eq!(
        fit(json!({"disk": "hdd", "zone": "a"})).unwrap(),
        "has label disk=hdd, and nodeSelector asks for disk=ssd"
    );
}

#[test]
fn every_operator_is_read_as_kubernetes_reads_it() {
    let node = node(json!({"zone": "a", "cores": "8", "odd": "x"}), json!([]));
    for (key, operator, values, matches) in [
        ("zone", "In", json!(["b", "a"]), true),
        ("zone", "In", json!(["b"]), false),
        ("none", "In", json!(["a"]), false),
        ("zone", "NotIn", json!(["a"]), false),
        ("none", "NotIn", json!(["a"]), true),
        ("zone", "Exists", json!([]), true),
        ("none", "Exists", Value::Null, false),
        ("zone", "DoesNotExist", json!([]), false),
        ("none", "DoesNotExist", json!([]), true),
        ("cores", "Gt", json!(["7"]), true),
        ("cores", "Gt", json!(["8"]), false),
        ("cores", "Lt", json!(["9"]), true),
        ("cores", "Lt", json!(["8"]), false),
        ("odd", "Gt", json!(["1"]), false),
        ("none", "Lt", json!(["1"]), false),
        // What Kubernetes cannot read matches nothing.
        ("zone", "In", json!([]), false),
        ("none", "NotIn", json!([]), false),
        ("zone", "Exists", json!(["a"]), false),
        ("none", "DoesNotExist", json!(["a"]), false),
        ("cores", "Gt", json!(["seven"]), false),
        ("cores", "Gt", json!(["1", "2"]), false),
        ("zone", "Is", json!(["a"]), false),
        ("zone", "", json!(["a"]), false),
    ] {
        let requirement = json!({"key": key, "operator": operator, "values": values});
        let placement = placement(&with_terms(json!([{"matchExpressions": [requirement]}])));
        let fit = if matches {
            Fit::Runs
        } else {
            Fit::Refused(Obstacle::Affinity)
        };
        assert_eq!(placement.fit(&node), fit, "{key} {operator} {values}");
    }
}

#[test]
fn the_name_of_a_node_is_the_only_field() {
    let node = node(json!({}), json!([]));
    for (key, operator, values, matches) in [
        ("metadata.name", "In", json!(["n1"]), true),
        ("metadata.name", "In", json!(["n2"]), false),
        ("metadata.name", "NotIn", json!(["n2"]), true),
        ("metadata.name", "NotIn", json!(["n1"]), false),
        ("metadata.name", "In", json!(["n1", "n2"]), false),
        ("metadata.name", "Exists", json!([]), false),
        ("metadata.uid", "In", json!(["n1"]), false),
    ] {
        let requirement = json!({"key": key, "operator": operator, "values": values});
        let placement = placement(&with_terms(json!([{"matchFields": [requirement]}])));
        assert_eq!(
            placement.fit(&node) == Fit::Runs,
            matches,
            "{key} {operator} {values}"
        );
    }
}

#[test]
fn one_term_is_enough_and_needs_all_of_its_requirements() {
    let node = node(json!({"zone": "a"}), json!([]));
    let is = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let named = json!([{"key": "metadata.name", "operator": "In", "values": ["n1"]}]);
    for (terms, runs) in [
        (
            json!([{"matchExpressions": [is("zone", "b")]}, {"matchExpressions": [is("zone", "a")]}]),
            true,
        ),
        (
            json!([{"matchExpressions": [is("zone", "a"), is("disk", "ssd")]}]),
            false,
        ),
        (
            json!([{"matchExpressions": [is("zone", "a")], "matchFields": named}]),
            true,
        ),
        (
            json!([{"matchExpressions": [is("zone", "b")], "matchFields": named}]),
            false,
        ),
        // A term that cannot be read leaves the others.
        (
            json!([{"matchExpressions": [{"key": "zone", "operator": "?"}]}, {"matchFields": named}]),
            true,
        ),
        (json!([{}]), false),
        (json!([]), false),
    ] {
        let placement = placement(&with_terms(terms.clone()));
        assert_eq!(placement.fit(&node) == Fit::Runs, runs, "{terms}");
    }
}

#[test]
fn taints_are_told_apart_by_their_effects() {
    let taint = |effect: &str| json!([{"key": "gpu", "value": "yes", "effect": effect}]);
    for (effect, toleration, expected) in [
        ("NoSchedule", json!({}), None),
        (
            "NoSchedule",
            json!({"key": "gpu", "operator": "Exists"}),
            Some(Fit::Runs),
        ),
        ("NoSchedule", json!({"operator": "Exists"}), Some(Fit::Runs)),
        (
            "NoSchedule",
            json!({"key": "gpu", "value": "yes"}),
            Some(Fit::Runs),
        ),
        ("NoSchedule", json!({"key": "gpu", "value": "no"}), None),
        (
            "NoSchedule",
            json!({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}),
            Some(Fit::Runs),
        ),
        (
            "NoSchedule",
            json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}),
            None,
        ),
        (
            "NoSchedule",
            json!({"key": "gpu", "operator": "Sometimes", "value": "yes"}),
            None,
        ),
        ("NoExecute", json!({}), None),
        (
            "NoExecute",
            json!({"key": "gpu", "operator": "Exists"}),
            Some(Fit::Runs),
        ),
        ("PreferNoSchedule", json!({}), Some(Fit::Runs)),
    ] {
        let placement = placement(&json!({"tolerations": [toleration]}));
        let node = node(json!({}), taint(effect));
        let refused = match effect {
            "NoExecute" => Fit::Refused(Obstacle::Taint(0)),
            _ => Fit::Stays(Obstacle::Taint(0)),
        };
        assert_eq!(
            placement.fit(&node),
            expected.unwrap_or(refused),
            "{effect} {toleration}"
        );
    }
    let placement = placement(&json!({}));
    let both = json!([{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]);
    let node = node(json!({}), both);
    let fit = placement.fit(&node);
    assert_eq!(fit, Fit::Refused(Obstacle::Taint(1)));
    assert!(!fit.runs() && !fit.stays());
    assert_eq!(
        placement.describe(Obstacle::Taint(1), &node),
        "has taint b:NoExecute, which the template does not tolerate"
    );
}

#[test]
fn daemons_stay_on_nodes_in_trouble() {
    let keys = |spec: &Value| {
        let all = for_daemons(&json!({"spec": spec}));
        let keys = all.iter().map(|one| {
            let key = one["key"].as_str().unwrap_or("*");
            let key = key.strip_prefix("node.kubernetes.io/").unwrap_or(key);
            let seconds = one["tolerationSeconds"].as_i64();
            seconds.map_or_else(|| key.to_owned(), |seconds| format!("{key} for {seconds}"))
        });
        keys.collect::<Vec<_>>().join(", ")
    };
    let six = "not-ready, unreachable, disk-pressure, memory-pressure, pid-pressure, unschedulable";
    assert_eq!(keys(&json!({})), six);
    assert_eq!(
        keys(&json!({"hostNetwork": true})),
        format!("{six}, network-unavailable")
    );
    let own = json!({"tolerations": [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 9}]});
    assert_eq!(
        keys(&own),
        "unreachable, not-ready for 9, not-ready, disk-pressure, memory-pressure, pid-pressure, unschedulable"
    );
}
