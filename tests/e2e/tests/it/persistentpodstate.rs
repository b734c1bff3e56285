//! A PersistentPodState: pods come back to their zones.

use kruise_e2e::{kubectl::Kubectl, wait};
use serde_json::{Value, json};

use crate::cluster::{Scenario, explained, is_ready, scenario};
use crate::own_nodes::{GROUP, Nodes};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const INJECTED: &str = "kruise.io/injected-persistent-pod-state";
const GENERATE: &str = "kruise.io/auto-generate-persistent-pod-state";

/// Nodes, each in a zone of its own: one that a pod gets back to by chance is one of many.
fn zones(scenario: &Scenario, count: usize) -> Nodes {
    let nodes = Nodes::new(scenario, count);
    for node in &nodes.names {
        let zone = json!({"metadata": {"labels": {(ZONE): format!("zone-{node}")}}});
        scenario.kubectl.patch("node", node, &zone).unwrap();
    }
    nodes
}

/// A StatefulSet of two pods on nodes of a scenario, with annotations of its own.
fn broker(api_version: &str, nodes: &Nodes, annotations: &Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": "StatefulSet",
        "metadata": {"name": "broker", "annotations": annotations},
        "spec": {"replicas": 2, "serviceName": "broker", "selector": {"matchLabels": {"app": "broker"}},
            "template": {"metadata": {"labels": {"app": "broker"}}, "spec": {
                "terminationGracePeriodSeconds": 1,
                "tolerations": [{"key": GROUP, "value": nodes.group}],
                "nodeSelector": {(GROUP): nodes.group},
                "containers": [{"name": "main", "image": "nginx:1"}]}}},
    })
}

fn state(api_version: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "PersistentPodState", "metadata": {"name": "broker"},
        "spec": {"targetRef": {"apiVersion": api_version, "kind": "StatefulSet", "name": "broker"},
            "requiredPersistentTopology": {"keys": [ZONE]},
            "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": [HOST]}}]},
    })
}

/// The records, by the names of pods.
fn records(kubectl: &Kubectl) -> Value {
    let state = kubectl.get("persistentpodstates", "broker").unwrap_or_default();
    state["status"]["podStates"].clone()
}

fn until_recorded(kubectl: &Kubectl, count: usize) -> Value {
    wait::until_true("the pods are recorded", wait::QUIET, || {
        Ok(records(kubectl).as_object().map_or(0, serde_json::Map::len) == count)
    })
    .unwrap();
    records(kubectl)
}

/// The pod of this name, once it is Ready and not the one before.
fn until_ready(kubectl: &Kubectl, name: &str, before: &Value) -> Value {
    wait::until_true("there is another pod, which is Ready", wait::QUIET, || {
        let Ok(pod) = kubectl.get("pods", name) else {
            return Ok(false);
        };
        Ok(is_ready(&pod) && pod["metadata"]["uid"] != *before)
    })
    .unwrap();
    kubectl.get("pods", name).unwrap()
}

/// Does the pod have what is recorded, and is it where it was?
fn assert_is_back(pod: &Value, record: &Value) {
    let labels = &record["nodeTopologyLabels"];
    assert_eq!(pod["metadata"]["annotations"][INJECTED], "broker");
    assert_eq!(pod["spec"]["nodeSelector"][ZONE], labels[ZONE]);
    assert!(!pod["spec"]["nodeSelector"][GROUP].is_null(), "of the template");
    let terms = &pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
    let expression = json!({"key": HOST, "operator": "In", "values": [labels[HOST]]});
    assert_eq!(
        terms,
        &json!([{"weight": 100, "preference": {"matchExpressions": [expression]}}])
    );
    assert_eq!(
        pod["spec"]["nodeName"], record["nodeName"],
        "one node has the zone"
    );
}

/// One is generated for a StatefulSet without pods, changed, reported on and deleted.
pub(crate) fn live(kubectl: &Kubectl) {
    let annotations = json!({(GENERATE): "true", "kruise.io/required-persistent-topology": ZONE});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "recorded", "annotations": annotations},
        "spec": {"replicas": 0, "serviceName": "recorded", "selector": {"matchLabels": {"app": "recorded"}},
            "template": {"metadata": {"labels": {"app": "recorded"}}, "spec": {
                "containers": [{"name": "main", "image": "nginx:1"}]}}},
    });
    kubectl.create(&set).unwrap();
    let annotate = |annotations: Value| {
        let patch = json!({"metadata": {"annotations": annotations}});
        kubectl.patch("statefulsets.v1.apps", "recorded", &patch).unwrap();
    };
    let until_requires = |key: &str| {
        wait::until_true(
            "it is as the annotations say, and reported on",
            wait::QUIET,
            || {
                let Ok(state) = kubectl.get("persistentpodstates", "recorded") else {
                    return Ok(false);
                };
                let is_reported = state["status"]["observedGeneration"] == state["metadata"]["generation"];
                Ok(is_reported && state["spec"]["requiredPersistentTopology"]["keys"] == json!([key]))
            },
        )
        .unwrap();
    };
    until_requires(ZONE);
    annotate(json!({"kruise.io/required-persistent-topology": HOST}));
    until_requires(HOST);
    annotate(json!({(GENERATE): null}));
    wait::until_true("it is deleted", wait::QUIET, || {
        Ok(kubectl.get("persistentpodstates", "recorded").is_err())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_of_a_statefulset_comes_back_to_its_zone() {
    let scenario = scenario("podstate");
    let kubectl = &scenario.kubectl;
    let nodes = zones(&scenario, 4);
    kubectl.create(&state("apps/v1")).unwrap();
    kubectl.create(&broker("apps/v1", &nodes, &json!({}))).unwrap();
    let recorded = until_recorded(kubectl, 2);
    for name in ["broker-0", "broker-1", "broker-0"] {
        let before = kubectl.get("pods", name).unwrap()["metadata"]["uid"].clone();
        kubectl.run(&["delete", "pod", name, "--wait=false"]).unwrap();
        let pod = until_ready(kubectl, name, &before);
        assert_is_back(&pod, &recorded[name]);
    }
    assert_eq!(records(kubectl), recorded);
    let namespace = kubectl.namespace().unwrap();
    let arguments = ["persistentpodstate/broker", "broker-1", "--namespace", namespace];
    let why = explained(&scenario, &arguments);
    assert!(
        why.contains("records 2 pods of StatefulSet broker") && why.contains("is Ready on node"),
        "{why}"
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn annotations_generate_one_that_goes_when_they_say_so() {
    let scenario = scenario("podstate-generated");
    let kubectl = &scenario.kubectl;
    let nodes = zones(&scenario, 3);
    let annotations = json!({(GENERATE): "true", "kruise.io/required-persistent-topology": ZONE,
        "kruise.io/preferred-persistent-topology": HOST});
    let set = kubectl
        .create(&broker("apps.kruise.io/v1beta1", &nodes, &annotations))
        .unwrap();
    let recorded = until_recorded(kubectl, 2);
    let generated = kubectl.get("persistentpodstates", "broker").unwrap();
    assert_eq!(
        generated["metadata"]["ownerReferences"][0]["uid"],
        set["metadata"]["uid"]
    );
    assert_eq!(generated["spec"]["preferredPersistentTopology"][0]["weight"], 100);
    let before = kubectl.get("pods", "broker-1").unwrap()["metadata"]["uid"].clone();
    kubectl
        .run(&["delete", "pod", "broker-1", "--wait=false"])
        .unwrap();
    assert_is_back(&until_ready(kubectl, "broker-1", &before), &recorded["broker-1"]);
    let off = json!({"metadata": {"annotations": {(GENERATE): "false"}}});
    kubectl
        .patch("statefulsets.v1beta1.apps.kruise.io", "broker", &off)
        .unwrap();
    wait::until_true("it is deleted", wait::QUIET, || {
        Ok(kubectl.get("persistentpodstates", "broker").is_err())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_scale_to_zero_forgets_nothing_while_pods_still_run() {
    let scenario = scenario("podstate-zero");
    let kubectl = &scenario.kubectl;
    let nodes = zones(&scenario, 3);
    kubectl.create(&state("apps/v1")).unwrap();
    kubectl.create(&broker("apps/v1", &nodes, &json!({}))).unwrap();
    let recorded = until_recorded(kubectl, 2);
    let before = kubectl.get("pods", "broker-1").unwrap()["metadata"]["uid"].clone();
    // The last pod does not go: pods of an ordered set go one after the other.
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    kubectl.patch("pod", "broker-1", &held).unwrap();
    let scale = |replicas: i32| {
        let patch = json!({"spec": {"replicas": replicas}});
        kubectl.patch("statefulsets.v1.apps", "broker", &patch).unwrap();
    };
    scale(0);
    wait::until_true("the last pod is being deleted", wait::QUIET, || {
        let pod = kubectl.get("pods", "broker-1")?;
        Ok(!pod["metadata"]["deletionTimestamp"].is_null())
    })
    .unwrap();
    assert_eq!(records(kubectl), recorded);
    scale(2);
    kubectl
        .patch("pod", "broker-1", &json!({"metadata": {"finalizers": null}}))
        .unwrap();
    assert_is_back(&until_ready(kubectl, "broker-1", &before), &recorded["broker-1"]);
    scale(0);
    until_recorded(kubectl, 0);
}
