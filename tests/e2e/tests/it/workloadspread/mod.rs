//! WorkloadSpreads: pods of workloads in subsets of nodes.

mod load;

use kruise_e2e::{kubectl::Kubectl, wait};
use serde_json::{Value, json};

use crate::cluster::{Scenario, explained, is_ready, scenario};
use crate::own_nodes::{GROUP, Nodes};

const ZONE: &str = "topology.kubernetes.io/zone";
const MATCHED: &str = "apps.kruise.io/matched-workloadspread";
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Two nodes, one in zone `a` and one in zone `b`.
fn zones(scenario: &Scenario) -> Nodes {
    nodes_of(scenario, &["a", "b"])
}

/// A node in each of these zones.
fn nodes_of(scenario: &Scenario, zones: &[&str]) -> Nodes {
    let nodes = Nodes::new(scenario, zones.len());
    for (node, zone) in nodes.names.iter().zip(zones) {
        let zone = json!({"metadata": {"labels": {(ZONE): zone}}});
        scenario.kubectl.patch("node", node, &zone).unwrap();
    }
    nodes
}

fn workload(api_version: &str, kind: &str, replicas: u32, nodes: &Nodes) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "terminationGracePeriodSeconds": 0,
                "tolerations": [{"key": GROUP, "value": nodes.group}],
                "nodeSelector": {(GROUP): nodes.group},
                "containers": [{"name": "main", "image": "nginx:1"}]}}},
    })
}

/// The subset of a zone.
fn subset(zone: &str, limit: Value) -> Value {
    let mut subset = json!({"name": zone, "patch": {"metadata": {"labels": {"subset": zone}}},
        "requiredNodeSelector": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}});
    if !limit.is_null() {
        subset["maxReplicas"] = limit;
    }
    subset
}

fn spread(api_version: &str, kind: &str, subsets: &Value) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread", "metadata": {"name": "web"},
        "spec": {"targetRef": {"apiVersion": api_version, "kind": kind, "name": "web"}, "subsets": subsets}})
}

/// `subset cost` of each pod that is Ready, sorted.
fn pods(kubectl: &Kubectl) -> anyhow::Result<Vec<String>> {
    let pods = kubectl.list("pods", "app=web")?;
    let ready = pods
        .iter()
        .filter(|pod| is_ready(pod) && pod["metadata"]["deletionTimestamp"].is_null());
    let lines = ready.map(|pod| {
        let annotations = &pod["metadata"]["annotations"];
        let matched: Value =
            serde_json::from_str(annotations[MATCHED].as_str().unwrap_or_default()).unwrap_or_default();
        let subset = matched["subset"].as_str().unwrap_or("none");
        assert!(
            subset == "none" || pod["metadata"]["labels"]["subset"] == subset,
            "{pod}"
        );
        format!("{subset} {}", annotations[COST].as_str().unwrap_or("none"))
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    Ok(lines)
}

fn until_pods(kubectl: &Kubectl, wanted: &[&str]) {
    let mut seen = Vec::new();
    let reached = wait::until_true("pods in these subsets", wait::QUIET, || {
        seen = pods(kubectl)?;
        Ok(seen == wanted)
    });
    assert!(reached.is_ok(), "{reached:?}: {seen:?}");
}

/// `name replicas/missing` of each subset.
fn until_counts(kubectl: &Kubectl, wanted: &str) {
    let mut seen = String::new();
    let reached = wait::until_true("the counts", wait::QUIET, || {
        let status = kubectl.get("workloadspreads", "web")?["status"].clone();
        let subsets = status["subsetStatuses"].as_array().cloned().unwrap_or_default();
        let subsets = subsets.iter().map(|one| {
            let name = one["name"].as_str().unwrap_or_default();
            format!("{name} {}/{}", one["replicas"], one["missingReplicas"])
        });
        seen = subsets.collect::<Vec<_>>().join(", ");
        Ok(seen == wanted)
    });
    assert!(reached.is_ok(), "{reached:?}: {seen}");
}

fn until_known(kubectl: &Kubectl) {
    wait::until_true("the WorkloadSpread is counted", wait::QUIET, || {
        let status = kubectl.get("workloadspreads", "web")?["status"].clone();
        Ok(status["observedGeneration"] == 1)
    })
    .unwrap();
}

/// One is created for a workload that does not exist, and reported on.
pub(crate) fn live(kubectl: &Kubectl) {
    let object = spread(
        "apps/v1",
        "Deployment",
        &json!([{"name": "a", "maxReplicas": 1}, {"name": "b"}]),
    );
    kubectl.create(&object).unwrap();
    until_counts(kubectl, "a 0/1, b 0/-1");
    kubectl.run(&["delete", "workloadspread", "web"]).unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn six_pods_of_a_cloneset_are_spread_three_and_three_and_leave_by_their_order() {
    let scenario = scenario("spread");
    let kubectl = &scenario.kubectl;
    let nodes = zones(&scenario);
    let api = "apps.kruise.io/v1beta1";
    let subsets = json!([subset("a", json!(3)), subset("b", json!(3))]);
    kubectl.create(&spread(api, "CloneSet", &subsets)).unwrap();
    until_known(kubectl);
    kubectl.create(&workload(api, "CloneSet", 6, &nodes)).unwrap();
    until_pods(kubectl, &["a 200", "a 200", "a 200", "b 100", "b 100", "b 100"]);
    until_counts(kubectl, "a 3/0, b 3/0");
    for pod in kubectl.list("pods", "subset=a").unwrap() {
        assert_eq!(pod["spec"]["nodeName"], *nodes.names[0]);
    }
    let namespace = kubectl.namespace().unwrap();
    let why = explained(&scenario, &["ws/web", "--namespace", namespace]);
    assert!(
        why.contains("subset a has 3 pods of 3 at most, 0 are missing")
            && why.contains("Nothing would be written now."),
        "{why}"
    );
    let scale = json!({"spec": {"replicas": 4}});
    kubectl.patch("clonesets", "web", &scale).unwrap();
    until_pods(kubectl, &["a 200", "a 200", "a 200", "b 100"]);
    until_counts(kubectl, "a 3/0, b 1/2");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_deployment_fills_its_limited_subset_and_the_rest_goes_to_the_other_one() {
    let scenario = scenario("spread-deployment");
    let kubectl = &scenario.kubectl;
    let nodes = zones(&scenario);
    let subsets = json!([subset("a", json!("40%")), subset("b", Value::Null)]);
    kubectl
        .create(&spread("apps/v1", "Deployment", &subsets))
        .unwrap();
    until_known(kubectl);
    kubectl
        .create(&workload("apps/v1", "Deployment", 5, &nodes))
        .unwrap();
    until_pods(kubectl, &["a 200", "a 200", "b 100", "b 100", "b 100"]);
    until_counts(kubectl, "a 2/0, b 3/-1");
    let change = json!({"spec": {"template": {"metadata": {"annotations": {"round": "2"}}}}});
    kubectl.patch("deployments", "web", &change).unwrap();
    wait::until_true("one version is left", wait::QUIET, || {
        let status = kubectl.get("workloadspreads", "web")?["status"].clone();
        let versions = status["versionedSubsetStatuses"].as_object();
        let pods = kubectl.list("pods", "app=web")?;
        let is_new = |pod: &Value| pod["metadata"]["annotations"]["round"] == "2";
        Ok(versions.is_some_and(|versions| versions.len() == 1) && pods.iter().all(is_new))
    })
    .unwrap();
    until_pods(kubectl, &["a 200", "a 200", "b 100", "b 100", "b 100"]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_that_no_node_can_take_move_to_the_next_subset() {
    let scenario = scenario("spread-adaptive");
    let kubectl = &scenario.kubectl;
    let nodes = zones(&scenario);
    let api = "apps.kruise.io/v1beta1";
    let mut object = spread(
        api,
        "CloneSet",
        &json!([subset("nowhere", json!(3)), subset("b", Value::Null)]),
    );
    object["spec"]["scheduleStrategy"] =
        json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 3}});
    kubectl.create(&object).unwrap();
    until_known(kubectl);
    kubectl.create(&workload(api, "CloneSet", 3, &nodes)).unwrap();
    until_pods(kubectl, &["b 100", "b 100", "b 100"]);
    let status = kubectl.get("workloadspreads", "web").unwrap()["status"].clone();
    let condition = &status["subsetStatuses"][0]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"]),
        (&json!("Schedulable"), &json!("False"), &json!("PodUnschedulable"))
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn existing_pods_become_part_of_the_subset_of_their_node() {
    let scenario = scenario("spread-existing");
    let kubectl = &scenario.kubectl;
    let nodes = zones(&scenario);
    let api = "apps.kruise.io/v1beta1";
    let mut set = workload(api, "CloneSet", 4, &nodes);
    set["spec"]["template"]["spec"]["nodeSelector"][ZONE] = json!("a");
    kubectl.create(&set).unwrap();
    until_pods(kubectl, &["none none", "none none", "none none", "none none"]);
    let subsets = json!([subset("a", json!(2)), subset("b", Value::Null)]);
    kubectl.create(&spread(api, "CloneSet", &subsets)).unwrap();
    until_pods(kubectl, &["a -100", "a -100", "a 200", "a 200"]);
    until_counts(kubectl, "a 4/0, b 0/-1");
    kubectl
        .patch("clonesets", "web", &json!({"spec": {"replicas": 2}}))
        .unwrap();
    until_pods(kubectl, &["a 200", "a 200"]);
}
