use std::sync::Arc;

use kube_cache::{Delta, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    cached::{CachedDistribution, DISTRIBUTIONS_BY_COPY},
    keys,
};

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn distribution(name: &str, copy: &str, targets: &Value) -> Arc<CachedDistribution> {
    let resource = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": copy}});
    decode(&json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution",
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"resource": resource, "targets": targets},
    }))
}

/// `all` and `named` copy the same Secret.
fn distributions() -> Vec<Arc<CachedDistribution>> {
    let names = |names: &[&str]| {
        let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"list": list})
    };
    vec![
        distribution(
            "all",
            "reg",
            &json!({"allNamespaces": true, "excludedNamespaces": names(&["sandbox"])}),
        ),
        distribution("named", "reg", &json!({"includedNamespaces": names(&["shop"])})),
        distribution(
            "web",
            "web",
            &json!({"namespaceSelector": {"matchLabels": {"team": "web"}}}),
        ),
    ]
}

fn names(keys: Vec<ObjectKey>) -> String {
    let names: Vec<String> = keys.into_iter().map(|key| key.name.to_string()).collect();
    names.join(" ")
}

#[test]
fn a_namespace_enqueues_those_that_select_it_before_or_after() {
    let namespace = |name: &str, team: &str| {
        Some(json!({"metadata": {"name": name, "uid": "u", "labels": {"team": team}}}))
    };
    let of = |old: Option<Value>, new: Option<Value>| {
        let decode = |object: Option<Value>| object.map(|object| decode(&object));
        let delta = Delta {
            old: decode(old),
            new: decode(new),
        };
        names(keys::of_namespace(&delta, &distributions()))
    };
    assert_eq!(of(None, namespace("shop", "web")), "all named web");
    assert_eq!(of(namespace("shop", "db"), None), "all named");
    assert_eq!(of(namespace("x", "web"), namespace("x", "db")), "all web");
    assert_eq!(of(namespace("sandbox", "db"), namespace("sandbox", "web")), "web");
    assert_eq!(of(None, namespace("kube-system", "web")), "");
    let heartbeat = |version: &str| {
        let mut namespace = namespace("shop", "web").unwrap();
        namespace["metadata"]["resourceVersion"] = json!(version);
        Some(namespace)
    };
    assert_eq!(of(heartbeat("1"), heartbeat("2")), "");
    let mut leaving = namespace("shop", "web").unwrap();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(of(namespace("shop", "web"), Some(leaving)), "all named web");
}

#[test]
fn a_copy_enqueues_its_controller_and_a_foreign_object_all_that_it_is_or_was_in_the_way_of() {
    let copy = |controller: Option<&str>, version: &str| {
        let owners: Vec<Value> = controller
            .iter()
            .map(
                |uid| json!({"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": uid, "controller": true}),
            )
            .collect();
        Some(
            json!({"metadata": {"name": "reg", "namespace": "shop", "uid": "u",
            "resourceVersion": version, "ownerReferences": owners}}),
        )
    };
    let copying: Vec<_> = distributions()
        .into_iter()
        .filter(|cached| {
            let keys = DISTRIBUTIONS_BY_COPY.keys_of(cached);
            keys.iter().any(|key| **key == *"secrets/reg")
        })
        .collect();
    assert_eq!(copying.len(), 2);
    let of = |old: Option<Value>, new: Option<Value>| {
        let decode = |object: Option<Value>| object.map(|object| decode(&object));
        let delta = Delta {
            old: decode(old),
            new: decode(new),
        };
        names(keys::of_copy(&delta, &copying))
    };
    let ours = Some("uid-all");
    assert_eq!(of(copy(ours, "1"), copy(ours, "2")), "all");
    assert_eq!(of(copy(ours, "1"), None), "all named");
    assert_eq!(of(copy(None, "1"), copy(None, "2")), "");
    assert_eq!(of(copy(None, "1"), None), "all named");
    assert_eq!(of(copy(ours, "1"), copy(None, "2")), "all named");
    assert_eq!(of(None, copy(Some("uid-other"), "1")), "all named");
}
