use std::sync::Arc;

use kube_cache::{Delta, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::keys;
use crate::images::{CachedNodeImage, CachedPullJob, JOBS_BY_WAIT};

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn job(name: &str, spec: &Value, status: &Value) -> Arc<CachedPullJob> {
    decode(&json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
        "spec": spec, "status": status,
    }))
}

/// `all` pulls app on every node, `db` another image, `named` on n1, `pods` where web runs, with a secret, `web` on
/// nodes of that pool; `done` has ended, and keeps the copy of its secret.
fn jobs() -> Vec<Arc<CachedPullJob>> {
    let none = json!({});
    let labels = json!({"matchLabels": {"pool": "web"}});
    let ended = json!({"completionTime": "2026-01-01T00:00:00Z"});
    vec![
        job("all", &json!({"image": "app:1"}), &none),
        job("db", &json!({"image": "db:1", "selector": {}}), &none),
        job("done", &json!({"image": "app:1", "pullSecrets": ["reg"]}), &ended),
        job(
            "named",
            &json!({"image": "docker.io/library/app:2", "selector": {"names": ["n1"]}}),
            &none,
        ),
        job(
            "pods",
            &json!({"image": "app:1", "pullSecrets": ["reg"], "podSelector": {"matchLabels": {"app": "web"}}}),
            &none,
        ),
        job("web", &json!({"image": "app:1", "selector": labels}), &none),
    ]
}

/// The jobs that the index has under a key.
fn waiting(key: &str) -> Vec<Arc<CachedPullJob>> {
    let has = |job: &Arc<CachedPullJob>| JOBS_BY_WAIT.keys_of(job).iter().any(|one| **one == *key);
    jobs().into_iter().filter(has).collect()
}

fn names(keys: impl IntoIterator<Item = ObjectKey>) -> String {
    let names: Vec<String> = keys.into_iter().map(|key| key.name.to_string()).collect();
    names.join(" ")
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn node(change: impl FnOnce(&mut Value)) -> Option<Arc<CachedNodeImage>> {
    let tags = |tag: &str| json!({"tags": [{"tag": tag, "createdAt": "2026-01-01T00:00:00Z"}]});
    let mut node = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
        "metadata": {"name": "n1", "uid": "u", "labels": {"pool": "db"}},
        "spec": {"images": {"app": tags("1"), "db": tags("1")}},
    });
    change(&mut node);
    Some(decode(&node))
}

fn of_node(old: Option<Arc<CachedNodeImage>>, new: Option<Arc<CachedNodeImage>>) -> String {
    names(keys::of_node(&Delta { old, new }, &waiting))
}

#[test]
fn a_node_that_joins_or_leaves_enqueues_the_running_jobs_that_select_it() {
    assert_eq!(of_node(None, node(|_| ())), "all db named pods");
    assert_eq!(of_node(node(|_| ()), None), "all db named pods");
    let other = |node: &mut Value| node["metadata"]["name"] = json!("n2");
    assert_eq!(of_node(None, node(other)), "all db pods");
}

#[test]
fn other_labels_enqueue_the_jobs_that_select_the_node_before_or_after() {
    let labels = |node: &mut Value| node["metadata"]["labels"]["pool"] = json!("web");
    assert_eq!(of_node(node(|_| ()), node(labels)), "all db named pods web");
}

#[test]
fn a_change_of_an_image_enqueues_the_jobs_of_that_image() {
    let changed = |change: fn(&mut Value)| of_node(node(|_| ()), node(change));
    assert_eq!(
        changed(|node| node["metadata"]["resourceVersion"] = json!("8")),
        ""
    );
    let pulling = |node: &mut Value| {
        node["status"] = json!({"imageStatuses": {"db": {"tags": [{"tag": "1", "phase": "Pulling"}]}}});
    };
    assert_eq!(changed(pulling), "db");
    let secrets = |node: &mut Value| node["spec"]["images"]["app"]["pullSecrets"] = json!([{"name": "reg"}]);
    assert_eq!(changed(secrets), "all named pods");
    let removed = |node: &mut Value| drop(node["spec"]["images"].as_object_mut().unwrap().remove("app"));
    assert_eq!(changed(removed), "all named pods");
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn pod(change: impl FnOnce(&mut Value)) -> Option<Arc<kruise_views::PodView>> {
    let mut pod = json!({
        "metadata": {"name": "p", "namespace": "shop", "uid": "p", "labels": {"app": "web"}},
        "spec": {"nodeName": "n1"}, "status": {"phase": "Running"},
    });
    change(&mut pod);
    Some(decode(&pod))
}

#[test]
fn a_pod_enqueues_the_jobs_that_select_it_when_it_comes_to_a_node_or_leaves_it() {
    let of = |old, new| names(keys::of_pod(&Delta { old, new }, &waiting));
    let unscheduled = |pod: &mut Value| pod["spec"] = json!({});
    assert_eq!(of(None, pod(|_| ())), "pods");
    assert_eq!(of(None, pod(unscheduled)), "");
    assert_eq!(of(pod(unscheduled), pod(|_| ())), "pods");
    assert_eq!(
        of(
            pod(|_| ()),
            pod(|pod| pod["status"]["phase"] = json!("Succeeded"))
        ),
        "pods"
    );
    assert_eq!(
        of(
            pod(|_| ()),
            pod(|pod| pod["metadata"]["resourceVersion"] = json!("9"))
        ),
        ""
    );
    assert_eq!(
        of(pod(|_| ()), pod(|pod| pod["metadata"]["labels"] = json!({}))),
        "pods"
    );
    let elsewhere = |pod: &mut Value| pod["metadata"]["namespace"] = json!("other");
    assert_eq!(of(None, pod(elsewhere)), "");
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn secret(namespace: &str, change: impl FnOnce(&mut Value)) -> Option<Arc<kruise_views::SecretView>> {
    let mut secret =
        json!({"metadata": {"name": "reg", "namespace": namespace, "uid": "s"}, "data": {"a": "MQ=="}});
    change(&mut secret);
    Some(decode(&secret))
}

#[test]
fn a_secret_enqueues_the_jobs_that_name_it_when_its_data_change() {
    let of = |old, new| names(keys::of_secret(&Delta { old, new }, "agents", &waiting));
    assert_eq!(of(None, secret("shop", |_| ())), "done pods");
    assert_eq!(of(secret("shop", |_| ()), None), "done pods");
    let data = |secret: &mut Value| secret["data"]["a"] = json!("Mg==");
    assert_eq!(of(secret("shop", |_| ()), secret("shop", data)), "done pods");
    let labels = |secret: &mut Value| secret["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(of(secret("shop", |_| ()), secret("shop", labels)), "");
    assert_eq!(of(None, secret("other", |_| ())), "");
}

#[test]
fn a_copy_enqueues_the_jobs_that_it_lists_before_or_after() {
    let copy = |jobs: &'static str| {
        secret("agents", |secret| {
            secret["metadata"]["annotations"] = json!({"imagepulljobs.kruise.io/references": jobs,
                "imagepulljobs.kruise.io/source-key": "shop/reg"});
        })
    };
    let delta = Delta {
        old: copy("shop/gone,shop/pods"),
        new: copy("shop/pods,nonsense"),
    };
    assert_eq!(names(keys::of_secret(&delta, "agents", &waiting)), "gone pods");
}

#[test]
fn a_change_after_the_end_is_one_of_the_specification() {
    let ended = json!({"completionTime": "2026-01-01T00:00:00Z"});
    let of = |spec: &Value, status: &Value| Some(job("warm", spec, status));
    let (one, two) = (json!({"image": "app:1"}), json!({"image": "app:2"}));
    let is_one = |old, new| keys::is_changed_after_end(&Delta { old, new });
    assert!(is_one(of(&one, &ended), of(&two, &ended)));
    assert!(!is_one(of(&one, &ended), of(&one, &ended)));
    assert!(
        !is_one(of(&one, &json!({})), of(&two, &ended)),
        "the end came with it"
    );
    assert!(!is_one(None, of(&two, &ended)));
}
