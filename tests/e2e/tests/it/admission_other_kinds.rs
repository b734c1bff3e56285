//! What our webhooks fill in and refuse. Nothing is stored.

use serde_json::{Value, json};

use crate::cluster::{Scenario, scenario, scenario_gated};

/// What would be stored.
fn taken(scenario: &Scenario, object: &Value) -> Value {
    let args = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let stored = scenario.kubectl.run_with_input(&args, &object.to_string());
    serde_json::from_str(&stored.unwrap()).unwrap()
}

/// Refused with this field, once the value is set at the pointer.
fn refused(scenario: &Scenario, good: &Value, pointer: &str, value: Value, field: &str) {
    let mut object = good.clone();
    *object.pointer_mut(pointer).unwrap() = value;
    let args = ["create", "--dry-run=server", "-f", "-"];
    let error = scenario.kubectl.refused(&args, &object.to_string()).unwrap();
    assert!(error.contains(field), "{pointer}: {error}");
}

fn object(group: &str, version: &str, kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": {"name": "admission-of-e2e"},
        "spec": spec,
    })
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_united_deployment_is_completed_and_refused_with_its_field() {
    let scenario = scenario("admission-united");
    for version in ["v1alpha1", "v1beta1"] {
        let pods = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
        });
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web", "template": pods,
        }});
        let zone = json!([{"key": "zone", "operator": "In", "values": ["a"]}]);
        let spec = json!({
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"statefulSetTemplate": template},
            "topology": {"subsets": [
                {"name": "a", "maxReplicas": 1, "nodeSelectorTerm": {"matchExpressions": zone}},
                {"name": "b"},
            ]},
        });
        let good = object("apps.kruise.io", version, "UnitedDeployment", &spec);
        let spec = taken(&scenario, &good)["spec"].take();
        assert_eq!(spec["replicas"], 1);
        assert_eq!(spec["revisionHistoryLimit"], 10);
        assert_eq!(
            spec["updateStrategy"],
            json!({"type": "Manual", "manualUpdate": {}})
        );
        assert_eq!(spec["topology"]["subsets"][1]["minReplicas"], 0);
        let pod = &spec["template"]["statefulSetTemplate"]["spec"]["template"]["spec"];
        assert_eq!(pod["dnsPolicy"], "ClusterFirst");
        for (pointer, value, field) in [
            (
                "/spec/topology/subsets/1/name",
                json!("a"),
                "spec.topology.subsets[1].name",
            ),
            (
                "/spec/topology/subsets/0/maxReplicas",
                json!(-1),
                "spec.topology.subsets[0].maxReplicas",
            ),
            (
                "/spec/topology/subsets/0/nodeSelectorTerm/matchExpressions/0/values",
                json!([]),
                "spec.topology.subsets[0].nodeSelectorTerm.matchExpressions[0].values",
            ),
            (
                "/spec/template/statefulSetTemplate/metadata/labels/app",
                json!("other"),
                "spec.template.statefulSetTemplate.metadata.labels",
            ),
        ] {
            refused(&scenario, &good, pointer, value, field);
        }
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_workload_spread_is_taken_as_it_is_and_refused_with_its_field() {
    let scenario = scenario("admission-spread");
    for (version, required) in [
        ("v1alpha1", "requiredNodeSelectorTerm"),
        ("v1beta1", "requiredNodeSelector"),
    ] {
        let spec = json!({
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"},
            "subsets": [
                {"name": "a", "maxReplicas": "30%", required: {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}},
                {"name": "b"},
            ],
        });
        let good = object("apps.kruise.io", version, "WorkloadSpread", &spec);
        assert_eq!(taken(&scenario, &good)["spec"]["subsets"], spec["subsets"]);
        for (pointer, value, field) in [
            ("/spec/targetRef/apiVersion", json!("apps/v1"), "spec.targetRef"),
            (
                "/spec/subsets/0/maxReplicas",
                json!("130%"),
                "spec.subsets[0].maxReplicas",
            ),
            ("/spec/subsets/1/name", json!("a"), "spec.subsets[1].name"),
        ] {
            refused(&scenario, &good, pointer, value, field);
        }
        let place = format!("/spec/subsets/0/{required}/matchExpressions/0/operator");
        let field = "spec.subsets[0].requiredNodeSelector.matchExpressions[0].values";
        refused(&scenario, &good, &place, json!("In"), field);
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_persistent_pod_state_is_refused_with_its_field() {
    let scenario = scenario("admission-persistent");
    for (version, keys) in [("v1alpha1", "nodeTopologyKeys"), ("v1beta1", "keys")] {
        let spec = json!({
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "broker"},
            "requiredPersistentTopology": {keys: ["topology.kubernetes.io/zone"]},
        });
        let good = object("apps.kruise.io", version, "PersistentPodState", &spec);
        assert_eq!(taken(&scenario, &good)["spec"], spec);
        for (member, value) in [("name", ""), ("apiVersion", "batch/v1"), ("apiVersion", "a/b/c")] {
            let place = format!("/spec/targetRef/{member}");
            refused(&scenario, &good, &place, json!(value), "spec.targetRef");
        }
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_resource_distribution_is_refused_with_its_field() {
    let scenario = scenario_gated("admission-distribution");
    for (version, selector) in [
        ("v1alpha1", "namespaceLabelSelector"),
        ("v1beta1", "namespaceSelector"),
    ] {
        let spec = json!({
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"a": "b"}},
            "targets": {
                "includedNamespaces": {"list": [{"name": "tools"}]},
                "excludedNamespaces": {"list": [{"name": "sandbox"}]},
                selector: {"matchLabels": {"team": "shop"}},
            },
        });
        let good = object("apps.kruise.io", version, "ResourceDistribution", &spec);
        assert_eq!(taken(&scenario, &good)["spec"]["resource"], spec["resource"]);
        let labels = format!("/spec/targets/{selector}/matchLabels/team");
        for (pointer, value, field) in [
            (
                "/spec/resource/metadata/name",
                "Not a name",
                "spec.resource.metadata.name",
            ),
            (
                "/spec/targets/excludedNamespaces/list/0/name",
                "tools",
                "spec.targets.includedNamespaces.list[0].name",
            ),
            (&labels, "a b", "spec.targets.namespaceSelector.matchLabels"),
        ] {
            refused(&scenario, &good, pointer, json!(value), field);
        }
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_unavailable_budget_is_refused_with_its_field() {
    let scenario = scenario("admission-budget");
    for version in ["v1alpha1", "v1beta1"] {
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": "20%"});
        let mut good = object("policy.kruise.io", version, "PodUnavailableBudget", &spec);
        good["metadata"]["annotations"] = json!({"pub.kruise.io/protect-total-replicas": "5"});
        assert_eq!(taken(&scenario, &good)["spec"]["maxUnavailable"], "20%");
        for (pointer, value, field) in [
            ("/spec/selector", json!({}), "spec.selector"),
            ("/spec/maxUnavailable", json!("101%"), "spec.maxUnavailable"),
            ("/spec/maxUnavailable", json!("5"), "spec.maxUnavailable"),
            (
                "/metadata/annotations",
                json!({"pub.kruise.io/protect-total-replicas": "five"}),
                "metadata.annotations[pub.kruise.io/protect-total-replicas]",
            ),
        ] {
            refused(&scenario, &good, pointer, value, field);
        }
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_node_image_is_completed_and_refused_with_its_field() {
    let scenario = scenario("admission-node-image");
    for version in ["v1alpha1", "v1beta1"] {
        let policy = json!({"ttlSecondsAfterFinished": 60});
        let spec = json!({"images": {"nginx": {"tags": [
            {"tag": "2", "pullPolicy": policy}, {"tag": "1", "pullPolicy": policy},
        ]}}});
        let good = object("apps.kruise.io", version, "NodeImage", &spec);
        let tags = taken(&scenario, &good)["spec"]["images"]["nginx"]["tags"].take();
        assert_eq!((&tags[0]["tag"], &tags[1]["tag"]), (&json!("1"), &json!("2")));
        for tag in tags.as_array().unwrap() {
            assert!(tag["createdAt"].as_str().unwrap().ends_with('Z'), "{tag}");
            let policy = json!({"ttlSecondsAfterFinished": 60, "timeoutSeconds": 600, "backoffLimit": 3});
            assert_eq!(tag["pullPolicy"], policy);
        }
        for (pointer, value, field) in [
            (
                "/spec/images/nginx/tags/0/tag",
                json!("1"),
                "spec.images[nginx].tags[1].tag",
            ),
            (
                "/spec/images/nginx/tags/1/pullPolicy",
                json!({}),
                "spec.images[nginx].tags[0].pullPolicy.ttlSecondsAfterFinished",
            ),
        ] {
            refused(&scenario, &good, pointer, value, field);
        }
    }
}
