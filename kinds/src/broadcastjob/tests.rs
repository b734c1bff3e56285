use std::sync::Arc;

use kruise_api::broadcastjob::BroadcastJob;
use kruise_views::{NodeView, PodView};
use kube_cache::{Delta, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{cached::PODS_BY_NODE, keys};
use crate::placing::Placing;
use kruise_runtime::parsed::Parsed;

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn job(name: &str, spec: &Value, completion: &Value, status: &Value) -> Arc<Parsed<Placing<BroadcastJob>>> {
    decode(&json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
        "spec": {"completionPolicy": completion, "template": {"spec": spec}}, "status": status,
    }))
}

/// `all` runs everywhere, `ssd` on nodes with such a disk, `large` on nodes with two processors; `done` has ended, and
/// `never` goes on in spite of a time that it once ended.
fn jobs() -> Vec<Arc<Parsed<Placing<BroadcastJob>>>> {
    let none = json!({});
    let large = json!({"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]});
    let ended = json!({"phase": "completed", "completionTime": "2026-01-01T00:00:00Z"});
    vec![
        job("all", &none, &none, &none),
        job("done", &none, &none, &ended),
        job("large", &large, &none, &none),
        job("never", &none, &json!({"type": "Never"}), &ended),
        job("ssd", &json!({"nodeSelector": {"disk": "ssd"}}), &none, &none),
    ]
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn node(change: impl FnOnce(&mut Value)) -> Option<Arc<NodeView>> {
    let mut node = json!({
        "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"disk": "ssd"}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4"}, "images": [], "conditions": [{"type": "Ready", "status": "True"}]},
    });
    change(&mut node);
    Some(decode(&node))
}

fn pod(kind: &str, node: &Value) -> Arc<PodView> {
    decode(&json!({
        "metadata": {"name": "p", "namespace": "shop", "ownerReferences": [
            {"apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "name": "pinned", "uid": "u", "controller": true}]},
        "spec": node,
    }))
}

fn of_node(old: Option<Arc<NodeView>>, new: Option<Arc<NodeView>>) -> String {
    names(keys::of_node(&Delta { old, new }, &jobs, &|_| Vec::new()))
}

fn names(keys: impl IntoIterator<Item = ObjectKey>) -> String {
    let names: Vec<String> = keys.into_iter().map(|key| key.name.to_string()).collect();
    names.join(" ")
}

#[test]
fn a_node_that_joins_or_leaves_enqueues_the_jobs_that_may_run_there_and_have_not_ended() {
    assert_eq!(of_node(None, node(|_| ())), "all large never ssd");
    assert_eq!(of_node(node(|_| ()), None), "all large never ssd");
}

#[test]
fn only_the_jobs_are_enqueued_whose_verdict_changed() {
    let changed = |change: fn(&mut Value)| of_node(node(|_| ()), node(change));
    assert_eq!(
        changed(|node| node["metadata"]["labels"]["disk"] = json!("hdd")),
        "ssd"
    );
    assert_eq!(
        changed(|node| node["metadata"]["labels"]["other"] = json!("x")),
        ""
    );
    assert_eq!(
        changed(|node| node["status"]["allocatable"]["cpu"] = json!("1")),
        "large"
    );
    assert_eq!(
        changed(|node| node["status"]["allocatable"]["cpu"] = json!("3")),
        ""
    );
    assert_eq!(
        changed(|node| node["spec"]["unschedulable"] = json!(true)),
        "all large never ssd"
    );
}

#[test]
fn a_heartbeat_or_other_images_of_a_node_enqueue_nothing_and_look_at_no_job() {
    let after = node(|node| {
        node["metadata"]["resourceVersion"] = json!("8");
        node["status"]["images"] = json!([{"names": ["check:1"], "sizeBytes": 5}]);
        node["status"]["conditions"][0]["lastHeartbeatTime"] = json!("2026-01-01T00:00:10Z");
    });
    let delta = Delta {
        old: node(|_| ()),
        new: after,
    };
    let keys = keys::of_node(&delta, &|| panic!("no job is looked at"), &|_| {
        panic!("nor any pod")
    });
    assert!(keys.is_empty());
}

#[test]
fn a_job_with_a_pod_on_the_node_is_enqueued_whatever_its_template_says() {
    let delta = Delta {
        old: node(|_| ()),
        new: node(|node| node["metadata"]["labels"]["other"] = json!("x")),
    };
    let on = |name: &str| {
        assert_eq!(name, "n1");
        vec![pod("BroadcastJob", &json!({"nodeName": "n1"}))]
    };
    assert_eq!(names(keys::of_node(&delta, &jobs, &on)), "pinned");
}

#[test]
fn only_pods_of_broadcastjobs_are_indexed_by_their_nodes() {
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["n2"]});
    let pinned = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [field]}]}}}});
    let of = |kind, spec| PODS_BY_NODE.keys_of(&pod(kind, &spec));
    assert_eq!(of("BroadcastJob", json!({"nodeName": "n1"})), ["n1".into()]);
    assert_eq!(of("BroadcastJob", pinned), ["n2".into()]);
    assert!(of("DaemonSet", json!({"nodeName": "n1"})).is_empty());
}
