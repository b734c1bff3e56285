use serde_json::json;

use super::super::testing::{Case, case, put};
use super::*;

const UNITED: Case = case("UnitedDeployment", good);

fn of(template: &str) -> Value {
    json!({
        "replicas": 4, "newerThanUs": true,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {template: {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web",
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx:1", "newerThanUs": 1}]},
                },
            },
        }},
        "topology": {"subsets": [
            {"name": "a", "replicas": "50%",
             "nodeSelectorTerm": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
             "tolerations": [{"operator": "Exists"}]},
            {"name": "b"},
        ]},
        "updateStrategy": {"type": "Manual", "manualUpdate": {"partitions": {"a": 1}}},
    })
}

fn good() -> Value {
    of("statefulSetTemplate")
}

#[test]
fn what_is_left_out_is_filled_in() {
    for version in ["v1alpha1", "v1beta1"] {
        let mut spec = good();
        for path in ["replicas", "updateStrategy"] {
            put(&mut spec, path, &Value::Null);
        }
        spec["template"]["statefulSetTemplate"]["spec"]["volumeClaimTemplates"] =
            json!([{"metadata": {"name": "d"}}]);
        let after = UNITED.mutated(version, &spec);
        assert_eq!(after["replicas"], 1);
        assert_eq!(after["revisionHistoryLimit"], 10);
        assert_eq!(
            after["updateStrategy"],
            json!({"type": "Manual", "manualUpdate": {}})
        );
        assert_eq!(after["newerThanUs"], true);
        let inner = &after["template"]["statefulSetTemplate"]["spec"];
        assert_eq!(inner["template"]["spec"]["dnsPolicy"], "ClusterFirst");
        assert_eq!(inner["template"]["spec"]["containers"][0]["newerThanUs"], 1);
        assert_eq!(inner["volumeClaimTemplates"][0]["status"]["phase"], "Pending");
        assert_eq!(after["topology"], spec["topology"]);
        // of the other kinds nothing is
        let spec = of("deploymentTemplate");
        assert_eq!(UNITED.mutated(version, &spec)["template"], spec["template"]);
    }
}

#[test]
fn the_least_is_nothing_where_only_bounds_are_given() {
    let subsets = |subsets: Value| {
        let mut spec = good();
        spec["topology"]["subsets"] = subsets;
        UNITED.mutated("v1beta1", &spec)["topology"]["subsets"].take()
    };
    assert_eq!(
        subsets(json!([{"name": "a", "maxReplicas": 2}, {"name": "b"}])),
        json!([{"name": "a", "maxReplicas": 2, "minReplicas": 0}, {"name": "b", "minReplicas": 0}])
    );
    let mixed = json!([{"name": "a", "maxReplicas": 2}, {"name": "b", "replicas": 1}]);
    assert_eq!(subsets(mixed.clone()), mixed);
    let plain = json!([{"name": "a"}]);
    assert_eq!(subsets(plain.clone()), plain);
}

#[test]
fn each_broken_rule_is_refused_with_its_field() {
    let one = "template.statefulSetTemplate";
    let inner = |path: &str| format!("{one}.spec.{path}");
    UNITED.each_is_refused(&[
        ("replicas", json!(-1), "spec.replicas: Invalid"),
        ("selector", Value::Null, "spec.selector: Required"),
        ("selector", json!({}), "spec.selector: Invalid"),
        (
            "selector.matchLabels.app",
            json!("a b"),
            "spec.selector.matchLabels: Invalid",
        ),
        (one, Value::Null, "spec.template: Required"),
        ("template.cloneSetTemplate", json!({}), "spec.template: Invalid"),
        (
            "template.statefulSetTemplate.metadata.labels.app",
            json!("other"),
            "spec.template.statefulSetTemplate.metadata.labels: Invalid",
        ),
        (
            &inner("template.metadata.labels.app"),
            json!("other"),
            "spec.template.statefulSetTemplate.spec.template.metadata.labels: Invalid",
        ),
        (
            &inner("replicas"),
            json!(2),
            "spec.template.statefulSetTemplate.spec.replicas: Invalid",
        ),
        (
            &inner("updateStrategy"),
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
            "spec.template.statefulSetTemplate.spec.updateStrategy.rollingUpdate.partition: Invalid",
        ),
        (
            &inner("updateStrategy"),
            json!({"type": "Never"}),
            "spec.template.statefulSetTemplate.spec.updateStrategy.type: Unsupported",
        ),
        (
            &inner("podManagementPolicy"),
            json!("Random"),
            "spec.template.statefulSetTemplate.spec.podManagementPolicy: Unsupported",
        ),
        (
            &inner("minReadySeconds"),
            json!(-1),
            "spec.template.statefulSetTemplate.spec.minReadySeconds: Invalid",
        ),
        (
            &inner("template.spec.containers.0.image"),
            json!(""),
            "spec.template.statefulSetTemplate.spec.template.spec.containers[0].image: Required",
        ),
        (
            &inner("template.spec.restartPolicy"),
            json!("Never"),
            "spec.template.statefulSetTemplate.spec.template.spec.restartPolicy: Unsupported",
        ),
        (
            &inner("template.spec.activeDeadlineSeconds"),
            json!(5),
            "spec.template.statefulSetTemplate.spec.template.spec.activeDeadlineSeconds: Forbidden",
        ),
        (
            &inner("volumeClaimTemplates"),
            json!([{"metadata": {"name": "Data"}}]),
            "spec.template.statefulSetTemplate.spec.volumeClaimTemplates[0].metadata.name: Invalid",
        ),
        (
            "updateStrategy.type",
            json!("Auto"),
            "spec.updateStrategy.type: Unsupported",
        ),
        (
            "updateStrategy.manualUpdate.partitions.c",
            json!(1),
            "spec.updateStrategy.manualUpdate.partitions[c]: Invalid",
        ),
    ]);
}

#[test]
fn each_broken_rule_of_the_topology_is_refused_with_its_field() {
    UNITED.each_is_refused(&[
        (
            "topology.subsets.1.name",
            json!(""),
            "spec.topology.subsets[1].name: Required",
        ),
        (
            "topology.subsets.1.name",
            json!("B"),
            "spec.topology.subsets[1].name: Invalid",
        ),
        (
            "topology.subsets.1.name",
            json!("a"),
            "spec.topology.subsets[1].name: Duplicate",
        ),
        (
            "topology.subsets.0.nodeSelectorTerm.matchExpressions.0.values",
            json!([]),
            "spec.topology.subsets[0].nodeSelectorTerm.matchExpressions[0].values: Required",
        ),
        (
            "topology.subsets.0.tolerations.0.operator",
            json!("Equal"),
            "spec.topology.subsets[0].tolerations[0].operator: Invalid",
        ),
        (
            "topology.subsets.0.replicas",
            json!(-1),
            "spec.topology.subsets[0].replicas: Invalid",
        ),
        (
            "topology.subsets.0.replicas",
            json!("101%"),
            "spec.topology.subsets[0].replicas: Invalid",
        ),
        (
            "topology.subsets.0.replicas",
            json!("half"),
            "spec.topology.subsets[0].replicas: Invalid",
        ),
        (
            "topology.subsets.0.replicas",
            json!(5),
            "spec.topology.subsets: Invalid",
        ),
        (
            "topology.subsets.1.replicas",
            json!(1),
            "spec.topology.subsets: Invalid",
        ),
        (
            "topology.subsets.1.maxReplicas",
            json!(1),
            "spec.topology.subsets: Invalid",
        ),
        (
            "topology.scheduleStrategy",
            json!({"type": "Adaptive"}),
            "spec.topology.subsets[0].replicas: Forbidden",
        ),
        (
            "topology.scheduleStrategy",
            json!({"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": true}}),
            "spec.topology.scheduleStrategy: Invalid",
        ),
    ]);
}

#[test]
fn numbers_and_bounds_add_up() {
    let check = |subsets: Value| {
        let mut spec = good();
        spec["topology"]["subsets"] = subsets;
        UNITED.refused("v1beta1", &spec)
    };
    put(&mut good(), "updateStrategy", &json!({}));
    let subset = |name: &str, member: &str, value: Value| json!({"name": name, member: value});
    let all = |value: Value| {
        json!([
            subset("a", "replicas", json!("50%")),
            subset("b", "replicas", value)
        ])
    };
    assert_eq!(check(all(json!(2))), None);
    assert!(check(all(json!(1))).is_some());
    // 12.5% of four is 0.5, which is one
    assert_eq!(
        check(json!([
            subset("a", "replicas", json!("13%")),
            subset("b", "replicas", json!(3))
        ])),
        None
    );
    let bounds = |least: Value, most: Value| json!([{"name": "a", "minReplicas": least, "maxReplicas": most}, {"name": "b"}]);
    assert_eq!(check(bounds(json!(1), json!("50%"))), None);
    let message = check(bounds(json!(3), json!("50%"))).unwrap();
    assert!(
        message.contains("spec.topology.subsets[0].minReplicas"),
        "{message}"
    );
    let limited = json!([
        subset("a", "maxReplicas", json!(1)),
        subset("b", "maxReplicas", json!(9))
    ]);
    assert!(check(limited).unwrap().contains("spec.topology.subsets"));
}

#[test]
fn templates_of_other_kinds_are_judged_by_what_they_are() {
    for kind in [
        "advancedStatefulSetTemplate",
        "deploymentTemplate",
        "cloneSetTemplate",
    ] {
        assert_eq!(UNITED.refused("v1beta1", &of(kind)), None, "{kind}");
        let mut spec = of(kind);
        put(
            &mut spec,
            &format!("template.{kind}.metadata.labels.app"),
            &json!("other"),
        );
        let message = UNITED.refused("v1beta1", &spec);
        assert_eq!(
            message.is_none(),
            kind == "cloneSetTemplate",
            "{kind}: {message:?}"
        );
    }
    let mut spec = of("cloneSetTemplate");
    spec["topology"] = json!({"scheduleStrategy": {
        "type": "Adaptive", "adaptive": {"reserveUnschedulablePods": true},
    }, "subsets": [{"name": "a"}]});
    assert_eq!(UNITED.refused("v1beta1", &spec), None);
}

#[test]
fn where_subsets_are_stays_and_what_a_stateful_set_cannot_change() {
    let change = |path: &str, value: Value| {
        let mut other = good();
        put(&mut other, path, &value);
        UNITED.update_refused(&good(), &other)
    };
    for (path, value) in [
        ("topology.subsets.0.tolerations", json!([])),
        ("topology.subsets.0.nodeSelectorTerm", json!({})),
    ] {
        let message = change(path, value).unwrap();
        assert!(
            message.contains(&format!("spec.{}: Forbidden", path.replace(".0.", "[0]."))),
            "{message}"
        );
    }
    let inner = |path: &str| format!("template.statefulSetTemplate.spec.{path}");
    let message = change(&inner("serviceName"), json!("other")).unwrap();
    assert!(
        message.contains("spec.template.statefulSetTemplate.spec.serviceName: Forbidden"),
        "{message}"
    );
    for (path, value) in [
        (inner("template.spec.containers.0.image"), json!("nginx:2")),
        (inner("minReadySeconds"), json!(5)),
        (inner("podManagementPolicy"), json!("")),
        ("topology.subsets.0.name".to_owned(), json!("c")),
        ("topology.subsets.1.tolerations".to_owned(), json!([])),
    ] {
        let mut other = good();
        put(&mut other, "updateStrategy.manualUpdate", &json!({}));
        put(&mut other, &path, &value);
        assert_eq!(UNITED.update_refused(&good(), &other), None, "{path}");
    }
    assert_eq!(UNITED.update_refused(&good(), &of("deploymentTemplate")), None);
}

#[test]
fn protected_objects_stay() {
    let mut on = UNITED;
    on.options.deletion_protection = true;
    let mut stored = UNITED.object("v1beta1", &good());
    stored["metadata"]["labels"] = json!({"policy.kruise.io/delete-protection": "Cascading"});
    assert_eq!(UNITED.refusal("DELETE", &Value::Null, &stored), None);
    assert_eq!(
        on.refusal("DELETE", &Value::Null, &stored).map(|(code, _)| code),
        Some(403)
    );
}
