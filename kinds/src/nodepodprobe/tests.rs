use std::sync::Arc;

use kruise_views::{NodeView, PodView};
use kube_cache::Delta;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::keys;
use crate::probes::{CachedMarker, CachedProbes, PROBES_BY_MARKER};

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn probes() -> Arc<CachedProbes> {
    let probe = |name: &str| json!({"name": name, "containerName": "c", "probe": {}});
    decode(&json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": "n1"}, "spec": {"podProbes": [
            {"name": "g-0", "namespace": "games", "uid": "u", "IP": "", "probes": [
                probe("a#x"), probe("a#y"), probe("nameless")]}]},
    }))
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn pod(change: impl FnOnce(&mut Value)) -> Option<Arc<PodView>> {
    let mut pod = json!({
        "metadata": {"name": "g-0", "namespace": "games", "uid": "u", "labels": {"app": "game"}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, {"type": "c/x", "status": "True"}]},
    });
    change(&mut pod);
    Some(decode(&pod))
}

#[test]
fn a_pod_that_its_node_lists_enqueues_the_node_when_it_ends_or_its_marks_change() {
    let of_node = |name: &str| (name == "n1").then(probes);
    let enqueued = |old, new| keys::of_pod(&Delta { old, new }, &of_node).is_some();
    let changed = |change: fn(&mut Value)| enqueued(pod(|_| ()), pod(change));
    assert!(enqueued(pod(|_| ()), None));
    assert!(!enqueued(None, pod(|_| ())), "its marker lists it first");
    assert!(changed(|pod| pod["status"]["phase"] = json!("Failed")));
    assert!(changed(|pod| pod["metadata"]["uid"] = json!("v")));
    assert!(changed(|pod| pod["metadata"]["labels"]["app"] = json!("web")));
    assert!(changed(|pod| pod["metadata"]["annotations"] = json!({"a": "b"})));
    assert!(changed(
        |pod| pod["status"]["conditions"][1]["status"] = json!("False")
    ));
    assert!(
        !changed(|pod| pod["status"]["conditions"][0]["status"] = json!("False")),
        "readiness is nothing that probes write"
    );
    let other = |pod: &mut Value| pod["metadata"]["name"] = json!("g-1");
    assert!(!enqueued(pod(other), None), "not listed");
    let elsewhere = |pod: &mut Value| pod["spec"]["nodeName"] = json!("n2");
    assert!(!enqueued(pod(elsewhere), None));
}

#[test]
fn a_node_is_enqueued_when_it_comes_or_goes_and_when_it_is_ready_without_a_node_pod_probe() {
    let node = |ready: &str, labels: Value| -> Option<Arc<NodeView>> {
        let condition = json!({"type": "Ready", "status": ready});
        let metadata = json!({"name": "n1", "uid": "u", "labels": labels});
        Some(decode(
            &json!({"metadata": metadata, "status": {"conditions": [condition]}}),
        ))
    };
    let enqueued = |old, new, has_probes: bool| keys::of_node(&Delta { old, new }, &|_| has_probes).is_some();
    let ready = || node("True", json!({}));
    assert!(enqueued(None, ready(), false) && enqueued(ready(), None, true));
    assert!(enqueued(node("False", json!({})), ready(), false));
    assert!(!enqueued(node("False", json!({})), ready(), true));
    assert!(!enqueued(ready(), node("True", json!({"a": "b"})), true));
    assert!(enqueued(
        ready(),
        node("True", json!({"type": "virtual-kubelet"})),
        true
    ));
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn marker(status: &Value, condition: &str) -> Option<Arc<CachedMarker>> {
    Some(decode(&json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": "a", "namespace": "games"}, "status": status,
        "spec": {"selector": {}, "probes": [{"name": "x", "containerName": "c", "probe": {}, "podConditionType": condition}]},
    })))
}

#[test]
fn a_marker_enqueues_the_nodes_with_its_probes_unless_only_its_status_changes() {
    let status = json!({"observedGeneration": 1});
    let count = |old, new| keys::of_marker(&Delta { old, new }, &|_| vec![probes()]).len();
    assert_eq!(count(marker(&json!(null), "c/x"), marker(&status, "c/x")), 0);
    assert_eq!(count(marker(&status, "c/x"), marker(&status, "c/y")), 1);
    assert_eq!(count(marker(&status, "c/x"), None), 1);
}

#[test]
fn node_pod_probes_are_indexed_once_for_each_marker() {
    assert_eq!(PROBES_BY_MARKER.keys_of(&probes()), ["games/a".into()]);
}
