//! NodeImages and the jobs that fill them, on nodes without an agent: the tests report what one would.

use std::collections::BTreeSet;

use kruise_e2e::{kubectl::Kubectl, wait};
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, explained, scenario_gated, text};
use crate::own_nodes::{GROUP, Nodes};

/// Where copies of pull secrets are.
const AGENTS: &str = "kruise-daemon-config";

fn image_of(kubectl: &Kubectl, node: &str) -> Option<Value> {
    kubectl.get("nodeimages", node).ok()
}

fn until_listed(nodes: &Nodes, kubectl: &Kubectl) {
    wait::until_true("the nodes have NodeImages", LIMIT, || {
        Ok(nodes.names.iter().all(|node| image_of(kubectl, node).is_some()))
    })
    .unwrap();
    // The manager learns of them a moment later. A job that is created before may end with those that it knows.
    std::thread::sleep(std::time::Duration::from_secs(1));
}

/// The tags of an image on a node.
fn tags(kubectl: &Kubectl, node: &str, image: &str) -> Vec<Value> {
    let node = image_of(kubectl, node).unwrap_or_default();
    let tags = node["spec"]["images"][image]["tags"].as_array();
    tags.cloned().unwrap_or_default()
}

/// The agent of a node reports that it has the only tag of an image.
fn succeed(kubectl: &Kubectl, node: &str, image: &str) {
    let wanted = tags(kubectl, node, image).remove(0);
    let at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut status = json!({"tag": wanted["tag"], "phase": "Succeeded", "progress": 100, "startTime": at, "completionTime": at});
    if !wanted["version"].is_null() {
        status["version"] = wanted["version"].clone();
    }
    let patch =
        json!({"status": {"desired": 1, "succeeded": 1, "imageStatuses": {(image): {"tags": [status]}}}});
    kubectl.patch_status("nodeimage", node, &patch).unwrap();
}

/// The nodes that are asked for an image and have not reported on it.
fn active(nodes: &Nodes, kubectl: &Kubectl, image: &str) -> Vec<String> {
    let is_active = |node: &&String| {
        let Some(stored) = image_of(kubectl, node) else {
            return false;
        };
        !stored["spec"]["images"][image].is_null() && stored["status"]["imageStatuses"][image].is_null()
    };
    nodes.names.iter().filter(is_active).cloned().collect()
}

/// Names of the copies of a secret that jobs of the namespace of the scenario need.
fn copies(scenario: &Scenario) -> Vec<String> {
    let agents = scenario.kubectl.clone().in_namespace(AGENTS);
    let namespace = format!("{}/", scenario.kubectl.namespace().unwrap());
    let mut copies = agents.list("secrets", "").unwrap();
    copies.retain(|copy| {
        let source = &copy["metadata"]["annotations"]["imagepulljobs.kruise.io/source-key"];
        source
            .as_str()
            .is_some_and(|source| source.starts_with(&namespace))
    });
    copies.iter().map(|copy| text(copy, "/metadata/name")).collect()
}

fn until_gone(kubectl: &Kubectl, resource: &str, name: &str) {
    wait::until_true("it is deleted", wait::QUIET, || {
        Ok(kubectl.get(resource, name).is_err())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_node_has_a_node_image_with_its_labels_and_loses_it_with_the_node() {
    let scenario = scenario_gated("node-images");
    let kubectl = &scenario.kubectl;
    let nodes = Nodes::new(&scenario, 1);
    until_listed(&nodes, kubectl);
    let node = &nodes.names[0];
    let stored = image_of(kubectl, node).unwrap();
    assert_eq!(stored["metadata"]["labels"][GROUP], nodes.group.as_str());
    nodes.run(&["label", "node", node, "pool=web"]);
    wait::until_true("the label is that of the node", LIMIT, || {
        Ok(kubectl.get("nodeimages", node)?["metadata"]["labels"]["pool"] == "web")
    })
    .unwrap();
    nodes.run(&["delete", "node", node]);
    until_gone(kubectl, "nodeimages", node);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_job_pulls_a_number_of_nodes_at_a_time_and_leaves_nothing() {
    let scenario = scenario_gated("pull-job");
    let kubectl = &scenario.kubectl;
    let agents = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENTS}});
    kubectl.apply(&agents).unwrap();
    let nodes = Nodes::new(&scenario, 3);
    until_listed(&nodes, kubectl);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "reg"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": r#"{"auths":{}}"#}});
    kubectl.create(&secret).unwrap();
    let labels = json!({"matchLabels": {(GROUP): nodes.group}});
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": "warm"},
        "spec": {"image": "registry.example/app:1", "parallelism": 2, "selector": labels, "pullSecrets": ["reg"],
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 1}},
    });
    kubectl.create(&job).unwrap();
    let image = "registry.example/app";
    let mut pulled = BTreeSet::new();
    while pulled.len() < 3 {
        let wanted = 2.min(3 - pulled.len());
        wait::until_true("the next nodes are asked", LIMIT, || {
            Ok(active(&nodes, kubectl, image).len() == wanted)
        })
        .unwrap();
        let copy = copies(&scenario);
        assert_eq!(copy.len(), 1, "{copy:?}");
        let next = active(&nodes, kubectl, image).remove(0);
        let stored = image_of(kubectl, &next).unwrap();
        let named = &stored["spec"]["images"][image]["pullSecrets"];
        assert_eq!(
            *named,
            json!([{"namespace": AGENTS, "name": copy[0], "mode": "batch"}])
        );
        if pulled.is_empty() {
            let target = ["imagepulljob/warm", "--namespace", "pull-job"];
            let why = explained(&scenario, &target);
            assert!(
                why.contains("waits: no more than 2 nodes pull at a time"),
                "{why}"
            );
        }
        succeed(kubectl, &next, image);
        pulled.insert(next);
    }
    until_gone(kubectl, "imagepulljobs", "warm");
    wait::until_true("tags and copies are gone", wait::QUIET, || {
        let has_tags = nodes
            .names
            .iter()
            .any(|node| !tags(kubectl, node, image).is_empty());
        Ok(!has_tags && copies(&scenario).is_empty())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_list_of_images_has_a_job_for_each_and_ends_with_them() {
    let scenario = scenario_gated("pull-list");
    let kubectl = &scenario.kubectl;
    let nodes = Nodes::new(&scenario, 1);
    until_listed(&nodes, kubectl);
    let list = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "metadata": {"name": "warm"},
        "spec": {"images": ["registry.example/app:1", "registry.example/db:2"], "selector": {"names": nodes.names},
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 5}},
    });
    kubectl.create(&list).unwrap();
    for image in ["registry.example/app", "registry.example/db"] {
        wait::until_true("the node is asked", LIMIT, || {
            Ok(!active(&nodes, kubectl, image).is_empty())
        })
        .unwrap();
    }
    assert_eq!(kubectl.list("imagepulljobs", "").unwrap().len(), 2);
    let name = &nodes.names[0];
    let at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let ended = |tag: &str, phase: &str| json!({"tags": [{"tag": tag, "phase": phase, "startTime": at, "completionTime": at}]});
    let statuses =
        json!({"registry.example/app": ended("1", "Succeeded"), "registry.example/db": ended("2", "Failed")});
    let patch = json!({"status": {"desired": 2, "succeeded": 1, "failed": 1, "imageStatuses": statuses}});
    kubectl.patch_status("nodeimage", name, &patch).unwrap();
    wait::until_true("the list has ended", LIMIT, || {
        let status = kubectl.get("imagelistpulljobs", "warm")?["status"].clone();
        Ok(status["completed"] == 2
            && status["succeeded"] == 1
            && status["failedImageStatuses"][0]["name"] == "registry.example/db:2")
    })
    .unwrap();
    until_gone(kubectl, "imagelistpulljobs", "warm");
    wait::until_true("its jobs and their tags are gone", wait::QUIET, || {
        let jobs = kubectl.list("imagepulljobs", "")?;
        Ok(jobs.is_empty() && tags(kubectl, name, "registry.example/app").is_empty())
    })
    .unwrap();
}
