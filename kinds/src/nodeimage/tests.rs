use std::sync::Arc;

use kruise_plan_nodes::nodeimage::Owner;
use kruise_views::NodeView;
use kube_cache::Delta;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::keys;
use crate::images::{CachedNodeImage, CachedPullJob, NODE_IMAGES_BY_OWNER};

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn node(change: impl FnOnce(&mut Value)) -> Option<Arc<NodeView>> {
    let mut node = json!({
        "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"disk": "ssd"}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4"}, "images": [], "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    change(&mut node);
    Some(decode(&node))
}

#[test]
fn heartbeats_of_nodes_enqueue_nothing_and_readiness_only_without_a_node_image() {
    let enqueued = |change: fn(&mut Value), has_image: bool| {
        let delta = Delta {
            old: node(|_| ()),
            new: node(change),
        };
        keys::of_node(&delta, &|_| has_image).is_some()
    };
    let heartbeat = |node: &mut Value| {
        node["metadata"]["resourceVersion"] = json!("8");
        node["status"]["images"] = json!([{"names": ["app:1"], "sizeBytes": 5}]);
        node["status"]["conditions"][0]["lastHeartbeatTime"] = json!("2026-01-01T00:00:10Z");
    };
    assert!(!enqueued(heartbeat, true) && !enqueued(heartbeat, false));
    let unready = |node: &mut Value| node["status"]["conditions"][0]["status"] = json!("False");
    assert!(!enqueued(unready, true) && enqueued(unready, false));
    let labels = |node: &mut Value| node["metadata"]["labels"]["disk"] = json!("hdd");
    assert!(enqueued(labels, true));
    let going = |node: &mut Value| node["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:10Z");
    assert!(enqueued(going, true));
    for (old, new) in [(None, node(|_| ())), (node(|_| ()), None)] {
        assert!(keys::of_node(&Delta { old, new }, &|_| true).is_some());
    }
}

fn job(uid: &str, kind: &str, status: &Value) -> Arc<CachedPullJob> {
    decode(&json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": {"name": "warm", "namespace": "shop", "uid": uid},
        "spec": {"image": "app:1", "completionPolicy": {"type": kind}}, "status": status,
    }))
}

fn node_image(owner: &str) -> Arc<CachedNodeImage> {
    decode(&json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": "n1"},
        "spec": {"images": {"app": {"tags": [{"tag": "1", "ownerReferences": [{"uid": owner}]},
            {"tag": "2", "ownerReferences": [{"uid": owner}]}]}}},
    }))
}

#[test]
fn the_nodes_of_a_job_are_enqueued_when_it_ends_or_is_gone() {
    let (none, ended) = (json!({}), json!({"completionTime": "2026-01-01T00:00:00Z"}));
    let count = |old: Option<Arc<CachedPullJob>>, new: Option<Arc<CachedPullJob>>| {
        let with_tags = |uid: &str| {
            assert_eq!(uid, "a");
            vec![node_image(uid)]
        };
        keys::of_job(&Delta { old, new }, &with_tags).len()
    };
    let running = || Some(job("a", "Always", &none));
    assert_eq!(count(None, running()), 0);
    assert_eq!(
        count(running(), Some(job("a", "Always", &json!({"active": 1})))),
        0
    );
    assert_eq!(count(running(), Some(job("a", "Always", &ended))), 1);
    assert_eq!(count(running(), None), 1);
    assert_eq!(
        count(running(), Some(job("b", "Always", &none))),
        1,
        "another one of its name"
    );
}

#[test]
fn only_running_jobs_with_an_end_keep_their_tags() {
    let ended = json!({"completionTime": "2026-01-01T00:00:00Z"});
    for (kind, status, expected) in [
        ("Always", json!({}), Owner::Pulls),
        ("Never", json!({}), Owner::Exists),
        ("Always", ended, Owner::Exists),
    ] {
        assert_eq!(keys::as_owner(&job("a", kind, &status)), expected, "{kind}");
    }
    let unreadable: Arc<CachedPullJob> = decode(&json!({
        "apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "warm"}, "spec": {"image": []}}));
    assert_eq!(keys::as_owner(&unreadable), Owner::Unknown);
}

#[test]
fn a_node_image_is_indexed_once_for_each_owner() {
    assert_eq!(NODE_IMAGES_BY_OWNER.keys_of(&node_image("a")), ["a".into()]);
}
