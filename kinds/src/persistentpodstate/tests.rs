use std::{collections::BTreeSet, sync::Arc};

use kruise_plan_kit::workloads::{AllowedKind, Workload};
use kruise_views::{NodeView, PodView, WorkloadView};
use kube_cache::{Delta, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    cached::{CachedPodState, POD_STATES_BY_TARGET, target_key},
    keys,
};

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn delta<T: DeserializeOwned>(old: Option<&Value>, new: Option<&Value>) -> Delta<T> {
    Delta {
        old: old.map(decode),
        new: new.map(decode),
    }
}

/// `broker` is for the StatefulSet of this name, and `noted` for the same with an annotation that is recorded.
fn states() -> Vec<Arc<CachedPodState>> {
    let state = |name: &str, annotations: Value| {
        decode(&json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "PersistentPodState",
            "metadata": {"name": name, "namespace": "mq", "uid": name},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "broker"},
                "persistentPodAnnotations": annotations},
        }))
    };
    vec![state("broker", json!([])), state("noted", json!([{"key": "ip"}]))]
}

fn targeting(namespace: &str, workload: &Workload) -> Vec<Arc<CachedPodState>> {
    let key = target_key(namespace, workload);
    let is_for = |state: &Arc<CachedPodState>| {
        let keys = POD_STATES_BY_TARGET.keys_of(state);
        keys.iter().any(|one| **one == *key)
    };
    states().into_iter().filter(is_for).collect()
}

fn names(keys: BTreeSet<ObjectKey>) -> String {
    let names: Vec<String> = keys.into_iter().map(|key| key.name.to_string()).collect();
    names.join(" ")
}

fn pod(change: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": "broker-0", "namespace": "mq", "uid": "p", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "broker", "uid": "u", "controller": true}]},
        "status": {"phase": "Running"}});
    if let Some(members) = change.as_object() {
        for (pointer, value) in members {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            pod.pointer_mut(parent).unwrap()[name] = value.clone();
        }
    }
    pod
}

#[test]
fn a_pod_enqueues_those_for_its_workload_when_it_matters() {
    let game = AllowedKind {
        group: "example.com".into(),
        version: "v1".into(),
        kind: "Game".into(),
    };
    let of = |old: Option<Value>, new: Option<Value>| {
        let delta: Delta<PodView> = delta(old.as_ref(), new.as_ref());
        names(keys::of_pod(&delta, std::slice::from_ref(&game), &targeting))
    };
    let condition = |status: &str| json!([{"type": "Ready", "status": status}]);
    let (plain, ready) = (
        pod(&json!({})),
        pod(&json!({"/status/conditions": condition("True")})),
    );
    assert_eq!(of(None, Some(plain.clone())), "broker noted");
    assert_eq!(of(Some(plain.clone()), None), "broker noted");
    assert_eq!(of(Some(plain.clone()), Some(ready.clone())), "broker noted");
    assert_eq!(of(Some(ready), Some(plain.clone())), "", "it ceases to be Ready");
    let leaving = pod(&json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}));
    assert_eq!(of(Some(plain.clone()), Some(leaving)), "broker noted");
    let annotated = pod(&json!({"/metadata/annotations": {"ip": "1"}}));
    assert_eq!(of(Some(plain.clone()), Some(annotated)), "noted");
    let heartbeat = pod(&json!({"/metadata/resourceVersion": "9"}));
    assert_eq!(of(Some(plain), Some(heartbeat)), "");
    let owner = |group: &str, kind: &str| json!([{"apiVersion": format!("{group}/v1"), "kind": kind, "name": "x", "uid": "x", "controller": true}]);
    let of_owner = |group: &str, kind: &str| {
        of(
            None,
            Some(pod(&json!({"/metadata/ownerReferences": owner(group, kind)}))),
        )
    };
    assert_eq!(of_owner("example.com", "Game"), "x", "one may be generated");
    assert_eq!(of_owner("example.com", "Pool"), "");
    assert_eq!(of_owner("batch", "Job"), "");
    assert_eq!(of(None, Some(pod(&json!({"/metadata/ownerReferences": []})))), "");
}

#[test]
fn a_node_enqueues_those_that_record_it_when_a_label_changes_that_they_record() {
    let state = |name: &str, key: &str, node: &str| -> Arc<CachedPodState> {
        decode(&json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "PersistentPodState",
            "metadata": {"name": name, "namespace": "mq", "uid": name},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name},
                "requiredPersistentTopology": {"keys": [key]}},
            "status": {"podStates": {"broker-0": {"nodeName": node}}},
        }))
    };
    let all = || {
        vec![
            state("here", "zone", "n"),
            state("there", "zone", "m"),
            state("rack", "rack", "n"),
        ]
    };
    let node = |labels: Value| Some(json!({"metadata": {"name": "n", "uid": "n", "labels": labels}}));
    let of = |old: Option<Value>, new: Option<Value>| {
        let delta: Delta<NodeView> = delta(old.as_ref(), new.as_ref());
        names(keys::of_node(&delta, &all))
    };
    let zone = |zone: &str| node(json!({"zone": zone}));
    assert_eq!(
        of(node(json!({})), zone("a")),
        "here",
        "it registered without a zone"
    );
    assert_eq!(of(zone("a"), zone("b")), "here");
    assert_eq!(of(zone("a"), zone("a")), "", "a heartbeat");
    assert_eq!(of(zone("a"), node(json!({"zone": "a", "other": "1"}))), "");
    assert_eq!(of(None, node(json!({"zone": "a", "rack": "r"}))), "here rack");
    assert_eq!(of(zone("a"), None), "", "records outlive the node");
}

#[test]
fn a_workload_enqueues_those_for_it_when_it_is_scaled_and_the_one_of_its_name_when_annotated() {
    let set = |name: &str, replicas: i32, annotations: Value| {
        Some(
            json!({"metadata": {"name": name, "namespace": "mq", "uid": name, "annotations": annotations},
            "spec": {"replicas": replicas}}),
        )
    };
    let of = |old: Option<Value>, new: Option<Value>| {
        let delta: Delta<WorkloadView> = delta(old.as_ref(), new.as_ref());
        names(keys::of_workload(
            ("apps", "StatefulSet"),
            &delta,
            WorkloadView::clone,
            &targeting,
        ))
    };
    let generate = || json!({"kruise.io/auto-generate-persistent-pod-state": "true"});
    assert_eq!(
        of(set("broker", 1, json!({})), set("broker", 2, json!({}))),
        "broker noted"
    );
    assert_eq!(of(set("broker", 1, json!({})), None), "broker noted");
    assert_eq!(of(None, set("other", 1, json!({}))), "");
    assert_eq!(of(None, set("other", 1, generate())), "other");
    assert_eq!(
        of(set("other", 1, generate()), set("other", 1, json!({}))),
        "other"
    );
    let more = json!({"kruise.io/auto-generate-persistent-pod-state": "true", "kruise.io/persistent-pod-annotations": "a"});
    assert_eq!(of(set("other", 1, generate()), set("other", 1, more)), "other");
    assert_eq!(
        of(
            set("other", 1, json!({"a": "1"})),
            set("other", 1, json!({"a": "2"}))
        ),
        ""
    );
}

#[test]
fn one_that_comes_or_goes_enqueues_the_one_of_its_targets_name() {
    let of = |old: Option<usize>, new: Option<usize>| {
        let at = |index: Option<usize>| index.map(|index| states().remove(index));
        let delta = Delta {
            old: at(old),
            new: at(new),
        };
        names(keys::of_state(&delta))
    };
    assert_eq!(of(None, Some(1)), "broker noted");
    assert_eq!(of(Some(1), None), "broker noted");
    assert_eq!(of(Some(1), Some(1)), "noted");
}
