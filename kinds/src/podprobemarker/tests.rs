use std::sync::Arc;

use kruise_views::{NodeView, PodView};
use kube_cache::{Delta, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::keys;
use crate::probes::{CachedMarker, CachedProbes};

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn marker(name: &str, app: &str) -> Arc<CachedMarker> {
    decode(&json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": name, "namespace": "games"},
        "spec": {"selector": {"matchLabels": {"app": app}}, "probes": []},
    }))
}

fn pod(change: impl FnOnce(&mut Value)) -> Arc<PodView> {
    let mut pod = json!({
        "metadata": {"name": "g-0", "namespace": "games", "uid": "u", "labels": {"app": "game"}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "podIP": "192.0.2.1", "conditions": [{"type": "Initialized", "status": "True"}]},
    });
    change(&mut pod);
    decode(&pod)
}

fn enqueued(old: Option<Arc<PodView>>, new: Option<Arc<PodView>>, marks_serverless: bool) -> Vec<String> {
    let markers = |namespace: &str| {
        assert_eq!(namespace, "games");
        vec![marker("a", "game"), marker("b", "web")]
    };
    let keys = keys::of_pod(&Delta { old, new }, marks_serverless, &markers);
    keys.iter().map(|key| key.name.to_string()).collect()
}

#[test]
fn a_pod_enqueues_the_markers_that_select_it_before_or_after_a_change_that_they_read() {
    let same = || Some(pod(|_| ()));
    let changed = |change: fn(&mut Value)| enqueued(same(), Some(pod(change)), false);
    assert_eq!(
        changed(|pod| pod["metadata"]["labels"]["app"] = json!("web")),
        ["a", "b"]
    );
    assert_eq!(changed(|pod| pod["status"]["podIP"] = json!("192.0.2.2")), ["a"]);
    assert_eq!(changed(|pod| pod["status"]["phase"] = json!("Failed")), ["a"]);
    assert_eq!(
        changed(|pod| pod["status"]["conditions"][0]["status"] = json!("False")),
        ["a"]
    );
    let other = |pod: &mut Value| pod["status"]["conditions"][0]["message"] = json!("x");
    assert!(changed(other).is_empty());
    assert_eq!(
        enqueued(same(), Some(pod(other)), true),
        ["a"],
        "conditions count with the gate"
    );
    assert_eq!(enqueued(None, same(), false), ["a"]);
    assert_eq!(enqueued(same(), None, false), ["a"]);
    let unbound = pod(|pod| pod["spec"]["nodeName"] = json!(""));
    assert!(enqueued(None, Some(unbound), false).is_empty());
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn probes(uid: &str, markers: &[(&str, &str)]) -> Option<Arc<CachedProbes>> {
    let entry = |(at, (pod, marker)): (usize, &(&str, &str))| {
        json!({"name": pod, "namespace": "games", "uid": format!("{pod}-{at}"), "IP": "", "probes": [
            {"name": format!("{marker}#p"), "containerName": "c", "probe": {}}]})
    };
    let list: Vec<Value> = markers.iter().enumerate().map(entry).collect();
    Some(decode(&json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": "n1", "uid": uid}, "spec": {"podProbes": list},
    })))
}

#[test]
fn a_node_that_joins_enqueues_all_markers_and_a_changed_list_those_that_it_concerns() {
    let all = || vec![ObjectKey::new("games", "a"), ObjectKey::new("games", "b")];
    let count = |old, new| keys::of_probes(&Delta { old, new }, &all).len();
    let both = || probes("u", &[("g-0", "a"), ("g-1", "b")]);
    assert_eq!(count(None, both()), 2);
    assert_eq!(count(both(), None), 2);
    assert_eq!(count(both(), probes("v", &[])), 2, "another one");
    assert_eq!(count(both(), both()), 0);
    let changed = probes("u", &[("g-0", "a")]);
    let keys = keys::of_probes(
        &Delta {
            old: both(),
            new: changed,
        },
        &all,
    );
    assert_eq!(keys, [ObjectKey::new("games", "b")]);
}

#[test]
fn a_node_enqueues_all_markers_when_it_comes_goes_or_becomes_virtual() {
    let node = |labels: Value, version: &str| -> Option<Arc<NodeView>> {
        let metadata = json!({"name": "n1", "uid": "u", "resourceVersion": version, "labels": labels});
        Some(decode(&json!({"metadata": metadata})))
    };
    let all = || vec![ObjectKey::new("games", "a")];
    let count = |old, new| keys::of_node(&Delta { old, new }, &all).len();
    let plain = || node(json!({}), "1");
    assert_eq!(count(plain(), node(json!({"a": "b"}), "2")), 0);
    assert_eq!(count(plain(), node(json!({"type": "virtual-kubelet"}), "2")), 1);
    assert_eq!((count(None, plain()), count(plain(), None)), (1, 1));
}
