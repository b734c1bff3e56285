//! PodProbeMarkers and NodePodProbes, on nodes without an agent: the tests report what one would.

use kruise_e2e::{kubectl::Kubectl, wait};
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, explained, scenario, scenario_gated, text};
use crate::own_nodes::{GROUP, Nodes};

const IDLE: &str = "game.example/idle";

fn probes_of(kubectl: &Kubectl, node: &str) -> Option<Value> {
    kubectl.get("nodepodprobes", node).ok()
}

pub(crate) fn until_listed(nodes: &Nodes, kubectl: &Kubectl) {
    wait::until_true("the nodes have NodePodProbes", LIMIT, || {
        Ok(nodes.names.iter().all(|node| probes_of(kubectl, node).is_some()))
    })
    .unwrap();
}

/// The probes that a node lists: `pod probe`.
fn listed(kubectl: &Kubectl, node: &str) -> Vec<String> {
    let node = probes_of(kubectl, node).unwrap_or_default();
    let entries = node["spec"]["podProbes"].as_array().cloned().unwrap_or_default();
    let lines = entries.iter().flat_map(|entry| {
        let probes = entry["probes"].as_array().cloned().unwrap_or_default();
        let name = text(entry, "/name");
        probes
            .into_iter()
            .map(move |probe| format!("{name} {}", text(&probe, "/name")))
    });
    lines.collect()
}

pub(crate) fn until_probes(kubectl: &Kubectl, node: &str, wanted: &[&str]) {
    wait::until_true("the node has these probes", LIMIT, || {
        Ok(listed(kubectl, node) == wanted)
    })
    .unwrap();
}

/// The agent of a node reports the same result for all probes that it lists.
pub(crate) fn report(kubectl: &Kubectl, node: &str, state: &str, message: &str) {
    let at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let stored = probes_of(kubectl, node).unwrap();
    let entries = stored["spec"]["podProbes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let statuses: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let probes = entry["probes"].as_array().unwrap().iter();
            let states: Vec<Value> = probes
                .map(|probe| {
                    json!({"name": probe["name"], "state": state, "message": message, "lastProbeTime": at,
                        "lastTransitionTime": at})
                })
                .collect();
            json!({"name": entry["name"], "namespace": entry["namespace"], "uid": entry["uid"], "probeStates": states})
        })
        .collect();
    let patch = json!({"status": {"podProbeStatuses": statuses}});
    kubectl.patch_status("nodepodprobe", node, &patch).unwrap();
}

/// A pod of `game` on a node, with a named port.
fn pod(nodes: &Nodes, name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "game"}},
        "spec": {
            "nodeName": node, "tolerations": [{"key": GROUP, "value": nodes.group}],
            "containers": [{"name": "main", "image": "nginx:1", "ports": [{"name": "web", "containerPort": 8080}]}]},
    })
}

/// Creates such a pod, and waits until it runs.
pub(crate) fn run_pod(kubectl: &Kubectl, nodes: &Nodes, name: &str, node: &str) {
    kubectl.create(&pod(nodes, name, node)).unwrap();
    wait::until_true("the pod runs", LIMIT, || {
        let pod = kubectl.get("pods", name)?;
        Ok(pod["status"]["phase"] == "Running")
    })
    .unwrap();
}

pub(crate) fn marker(name: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "game"}}, "probes": [{
            "name": "idle", "containerName": "main", "podConditionType": IDLE,
            "probe": {"httpGet": {"path": "/idle", "port": "web"}},
            "markerPolicy": [
                {"state": "Succeeded", "labels": {"game": "idle"}, "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-10"}},
                {"state": "Failed", "labels": {"game": "busy"}},
            ]}]},
    })
}

/// Status of the condition, the label, and the annotation of a pod.
fn marks(kubectl: &Kubectl, pod: &str) -> (String, String, String) {
    let pod = kubectl.get("pods", pod).unwrap_or_default();
    let conditions = pod["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let condition = conditions.iter().find(|one| one["type"] == IDLE);
    let condition = condition.map(|one| text(one, "/status")).unwrap_or_default();
    let metadata = &pod["metadata"];
    let value = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        condition,
        value(&metadata["labels"]["game"]),
        value(&metadata["annotations"]["controller.kubernetes.io/pod-deletion-cost"]),
    )
}

pub(crate) fn until_marked(kubectl: &Kubectl, pod: &str, wanted: (&str, &str, &str)) {
    wait::until_true("the pod has these marks", LIMIT, || {
        let (condition, label, annotation) = marks(kubectl, pod);
        Ok((&*condition, &*label, &*annotation) == wanted)
    })
    .unwrap();
}

fn begin(name: &str, count: usize) -> (Scenario, Nodes) {
    let scenario = scenario(name);
    let nodes = Nodes::new(&scenario, count);
    until_listed(&nodes, &scenario.kubectl);
    (scenario, nodes)
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn results_of_probes_become_conditions_labels_and_annotations_of_pods() {
    let (scenario, nodes) = begin("probes-results", 1);
    let (kubectl, node) = (&scenario.kubectl, nodes.names[0].as_str());
    run_pod(kubectl, &nodes, "g-0", node);
    kubectl.create(&marker("idle")).unwrap();
    until_probes(kubectl, node, &["g-0 idle#idle"]);
    let probe = probes_of(kubectl, node).unwrap()["spec"]["podProbes"][0]["probes"][0]["probe"].clone();
    assert_eq!(
        (&probe["httpGet"]["port"], &probe["httpGet"]["scheme"]),
        (&json!(8080), &json!("HTTP"))
    );
    report(kubectl, node, "Succeeded", "no players");
    until_marked(kubectl, "g-0", ("True", "idle", "-10"));
    let why = explained(
        &scenario,
        &["podprobemarker/idle", "--namespace", "probes-results"],
    );
    assert!(why.contains("idle: Succeeded (no players)"), "{why}");
    report(kubectl, node, "Failed", "3 players");
    until_marked(kubectl, "g-0", ("False", "busy", ""));
    report(kubectl, node, "Unknown", "");
    until_marked(kubectl, "g-0", ("False", "", ""));
    let status = kubectl.get("podprobemarkers", "idle").unwrap()["status"].clone();
    assert_eq!(status["matchedPods"], 1);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn probes_follow_pods_and_markers_and_nothing_is_left() {
    let (scenario, nodes) = begin("probes-lists", 2);
    let kubectl = &scenario.kubectl;
    let (first, second) = (nodes.names[0].as_str(), nodes.names[1].as_str());
    for (name, node) in [("g-0", first), ("g-1", second)] {
        run_pod(kubectl, &nodes, name, node);
    }
    let mut other = marker("ba");
    other["spec"]["probes"][0]["podConditionType"] = json!("game.example/other");
    for marker in [marker("a"), other] {
        kubectl.create(&marker).unwrap();
        let name = text(&marker, "/metadata/name");
        wait::until_true("both nodes probe", LIMIT, || {
            let is_there =
                |node: &str, pod: &str| listed(kubectl, node).contains(&format!("{pod} {name}#idle"));
            Ok(is_there(first, "g-0") && is_there(second, "g-1"))
        })
        .unwrap();
    }
    nodes.run(&["label", "pod", "g-1", "app=web", "--overwrite"]);
    until_probes(kubectl, second, &[]);
    nodes.run(&["label", "pod", "g-1", "app=game", "--overwrite"]);
    wait::until_true("it is probed again", LIMIT, || {
        Ok(listed(kubectl, second).len() == 2)
    })
    .unwrap();
    nodes.run(&["delete", "podprobemarker", "a"]);
    until_probes(kubectl, first, &["g-0 ba#idle"]);
    until_probes(kubectl, second, &["g-1 ba#idle"]);
    nodes.run(&["delete", "pod", "g-1"]);
    until_probes(kubectl, second, &[]);
    nodes.run(&["delete", "node", second]);
    wait::until_true("the NodePodProbe goes with its node", LIMIT, || {
        Ok(probes_of(kubectl, second).is_none())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_says_its_probes_to_the_provider_of_a_virtual_node_and_is_marked_by_its_conditions() {
    let scenario = scenario_gated("probes-virtual");
    let kubectl = &scenario.kubectl;
    let nodes = Nodes::new(&scenario, 1);
    let node = nodes.names[0].as_str();
    nodes.run(&["label", "node", node, "type=virtual-kubelet", "--overwrite"]);
    kubectl.create(&marker("idle")).unwrap();
    // At once: the marker is stored when API servers know that its pods are to be reviewed.
    run_pod(kubectl, &nodes, "g-0", node);
    let annotations = kubectl.get("pods", "g-0").unwrap()["metadata"]["annotations"].clone();
    let probes: Value = serde_json::from_str(&text(&annotations, "/kruise.io~1podprobe")).unwrap();
    let wanted = json!([{"name": "idle", "containerName": "main", "podConditionType": IDLE,
        "probe": {"httpGet": {"path": "/idle", "port": "web"}}}]);
    assert_eq!(probes, wanted);
    assert_eq!(marks(kubectl, "g-0"), <(String, String, String)>::default());
    let condition = json!({"status": {"conditions": [{"type": IDLE, "status": "True"}]}}).to_string();
    let patch = [
        "patch",
        "pod",
        "g-0",
        "--subresource=status",
        "--type=strategic",
        "-p",
    ];
    kubectl.run(&[&patch[..], &[&condition]].concat()).unwrap();
    until_marked(kubectl, "g-0", ("True", "idle", "-10"));
    let status = kubectl.get("podprobemarkers", "idle").unwrap()["status"].clone();
    assert_eq!(status["matchedPods"], 1);
}
