use std::sync::Arc;

use kruise_api::ephemeraljob::EphemeralJob;
use kruise_views::PodView;
use kube_cache::Delta;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::keys;
use kruise_runtime::parsed::Parsed;

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn job(name: &str, selector: &Value, status: &Value) -> Arc<Parsed<EphemeralJob>> {
    decode(&json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
        "spec": {"selector": selector, "template": {"ephemeralContainers": []}}, "status": status,
    }))
}

/// `all` selects every pod, `cart` those of that label; `done` has ended.
fn jobs(namespace: &str) -> Vec<Arc<Parsed<EphemeralJob>>> {
    assert_eq!(namespace, "shop");
    let (none, cart) = (json!({}), json!({"matchLabels": {"app": "cart"}}));
    let ended = json!({"completionTime": "2026-01-01T00:00:00Z"});
    vec![
        job("all", &none, &none),
        job("cart", &cart, &none),
        job("done", &none, &ended),
    ]
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn pod(change: impl FnOnce(&mut Value)) -> Option<Arc<PodView>> {
    let mut pod = json!({
        "metadata": {"name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7", "labels": {"app": "cart"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}], "ephemeralContainers": [{"name": "dump"}]},
        "status": {"phase": "Running"},
    });
    change(&mut pod);
    Some(decode(&pod))
}

fn keys(old: Option<Arc<PodView>>, new: Option<Arc<PodView>>) -> String {
    let keys = keys::of_pod(&Delta { old, new }, &jobs);
    let names: Vec<String> = keys.into_iter().map(|key| key.name.to_string()).collect();
    names.join(" ")
}

#[test]
fn a_pod_that_comes_or_goes_enqueues_the_jobs_that_select_it_and_have_not_ended() {
    assert_eq!(keys(None, pod(|_| ())), "all cart");
    assert_eq!(keys(pod(|_| ()), None), "all cart");
    assert_eq!(
        keys(None, pod(|pod| pod["metadata"]["labels"] = json!({}))),
        "all"
    );
}

#[test]
fn only_changes_that_a_plan_reads_enqueue_jobs() {
    let changed = |change: fn(&mut Value)| keys(pod(|_| ()), pod(change));
    let state = json!([{"name": "dump", "state": {"running": {}}}]);
    let reports = |pod: &mut Value| pod["status"]["ephemeralContainerStatuses"] = state.clone();
    assert_eq!(keys(pod(|_| ()), pod(reports)), "all cart");
    assert_eq!(
        changed(|pod| pod["metadata"]["labels"] = json!({})),
        "all cart",
        "the label is gone"
    );
    assert_eq!(
        changed(|pod| pod["status"]["phase"] = json!("Failed")),
        "all cart"
    );
    assert_eq!(changed(|pod| pod["metadata"]["uid"] = json!("v")), "all cart");
    assert_eq!(changed(|pod| pod["metadata"]["resourceVersion"] = json!("8")), "");
    assert_eq!(
        changed(|pod| pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}])),
        ""
    );
}
