use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use kruise_api::workloadspread::WorkloadSpread;
use kruise_plan_kit::{
    Explain, Memory,
    workloads::{Aspect, Known, Workload},
};
use kruise_plan_spread::workloadspread::Nodes;
use kruise_views::{NodeView, PodView, WorkloadView, numbers_of};
use kube_cache::Delta;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Inputs,
    cached::{CachedSpread, SPREADS_BY_TARGET, target_key},
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

fn spread(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
        "metadata": {"name": "web-spread", "namespace": "shop", "uid": "s", "generation": 1},
        "spec": {"targetRef": {"apiVersion": api_version, "kind": kind, "name": "web"},
                 "subsets": [{"name": "a", "maxReplicas": "50%"}, {"name": "b"}]}})
}

fn owner(kind: &str, name: &str) -> Value {
    let group = if kind == "Game" { "example.com" } else { "apps" };
    json!([{"apiVersion": format!("{group}/v1"), "kind": kind, "name": name, "uid": name, "controller": true}])
}

fn pod(change: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": "web-x", "namespace": "shop", "uid": "p",
            "annotations": {"apps.kruise.io/matched-workloadspread": r#"{"name":"web-spread","subset":"a"}"#},
            "labels": {}, "ownerReferences": owner("ReplicaSet", "web-1")},
        "status": {"phase": "Pending"}});
    for (pointer, value) in change.as_object().into_iter().flatten() {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        pod.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    pod
}

#[test]
fn a_pod_enqueues_the_one_in_its_annotation_when_it_matters() {
    let of = |old: Option<&Value>, new: Option<&Value>| {
        let keys = keys::of_pod(&delta::<PodView>(old, new));
        let names: Vec<String> = keys.into_iter().map(|key| key.name.to_string()).collect();
        names.join(" ")
    };
    let plain = pod(&json!({}));
    let changed = |pointer: &str, value: Value| of(Some(&plain), Some(&pod(&json!({pointer: value}))));
    assert_eq!(
        (of(None, Some(&plain)), of(Some(&plain), None)),
        ("web-spread".into(), "web-spread".into())
    );
    let unscheduled = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    for (pointer, value, expected) in [
        ("/status/phase", json!("Running"), ""),
        ("/status/phase", json!("Succeeded"), "web-spread"),
        (
            "/metadata/deletionTimestamp",
            json!("2026-01-01T00:00:00Z"),
            "web-spread",
        ),
        (
            "/metadata/labels",
            json!({"pod-template-hash": "2"}),
            "web-spread",
        ),
        ("/metadata/labels", json!({"other": "2"}), ""),
        ("/status/conditions", unscheduled, "web-spread"),
        (
            "/status/conditions",
            json!([{"type": "Ready", "status": "True"}]),
            "",
        ),
        ("/metadata/resourceVersion", json!("9"), ""),
    ] {
        assert_eq!(changed(pointer, value.clone()), expected, "{pointer} {value}");
    }
    let other = json!({"apps.kruise.io/matched-workloadspread": r#"{"name":"other","subset":"a"}"#});
    assert_eq!(changed("/metadata/annotations", other), "other web-spread");
    assert_eq!(of(None, Some(&pod(&json!({"/metadata/annotations": {}})))), "");
}

#[test]
fn a_workload_enqueues_those_for_it_and_for_its_controller() {
    let cached: Arc<CachedSpread> = decode(&spread("apps/v1", "Deployment"));
    let targeting = |namespace: &str, workload: &Workload| {
        let key = target_key(namespace, workload);
        let is_for = SPREADS_BY_TARGET.keys_of(&cached).iter().any(|one| **one == *key);
        is_for.then(|| cached.clone()).into_iter().collect()
    };
    let of = |kind: &str, old: Option<&Value>, new: Option<&Value>| {
        keys::of_workload(
            ("apps", kind),
            &delta::<WorkloadView>(old, new),
            WorkloadView::clone,
            &targeting,
        )
        .len()
    };
    let named = |name: &str, replicas: i32, image: &str, owners: Value| {
        json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owners},
            "spec": {"replicas": replicas, "template": {"spec": {"image": image}}}})
    };
    let web = |replicas, image| named("web", replicas, image, json!([]));
    assert_eq!(of("Deployment", None, Some(&web(1, "a"))), 1);
    assert_eq!(of("Deployment", Some(&web(1, "a")), None), 1);
    assert_eq!(of("Deployment", Some(&web(1, "a")), Some(&web(2, "a"))), 1);
    assert_eq!(of("Deployment", Some(&web(1, "a")), Some(&web(1, "b"))), 1);
    assert_eq!(of("Deployment", Some(&web(1, "a")), Some(&web(1, "a"))), 0);
    assert_eq!(of("StatefulSet", None, Some(&web(1, "a"))), 0);
    let set = |replicas| named("web-1", replicas, "a", owner("Deployment", "web"));
    assert_eq!(of("ReplicaSet", None, Some(&set(1))), 1);
    assert_eq!(of("ReplicaSet", Some(&set(1)), Some(&set(0))), 1);
    assert_eq!(
        of("ReplicaSet", None, Some(&named("other", 1, "a", json!([])))),
        0
    );
}

struct NoNodes;

impl Nodes for NoNodes {
    fn get(&self, _: &str) -> Option<Arc<NodeView>> {
        None
    }
}

/// The counts that are reported, for a target that is found so.
fn counts(spread: &Value, cached: &Known, stored: &Known, pods: &[Value], sets: &[Value]) -> String {
    let spread = WorkloadSpread::from_value(spread.clone()).unwrap();
    let pods: Vec<Arc<PodView>> = pods.iter().map(decode).collect();
    let sets: Vec<Arc<WorkloadView>> = sets.iter().map(decode).collect();
    let known = |workload: &Workload, _: Aspect| match workload.kind.as_str() {
        "ReplicaSet" | "Match" => {
            let owner = decode(&json!({"metadata": {"name": workload.name, "uid": workload.name,
                "ownerReferences": owner("Game", "web")}}));
            Known::Found(owner)
        }
        _ => cached.clone(),
    };
    let inputs = Inputs {
        spread: &spread,
        known: &known,
        stored: &|_| stored.clone(),
        pods_of: &|uid| {
            let is_of = |pod: &&Arc<PodView>| pod.controller.as_ref().is_some_and(|owner| *owner.uid == *uid);
            pods.iter().filter(is_of).cloned().collect()
        },
        all_pods: &|| pods.clone(),
        replica_sets_of: &|_| sets.clone(),
        nodes: &NoNodes,
        listed: &[],
        before: &BTreeSet::new(),
    };
    let plan = inputs.plan(&Memory::default(), Explain::No, Timestamp::UNIX_EPOCH);
    let Some(status) = plan.status else {
        return format!(
            "nothing, and again {:?}",
            plan.requeue.map(|again| again.as_secs())
        );
    };
    let subsets = status.patch["status"]["subsetStatuses"].as_array().unwrap();
    let texts = subsets
        .iter()
        .map(|one| format!("{}/{}", one["replicas"], one["missingReplicas"]));
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn pods_of_a_deployment_are_those_of_its_replica_sets() {
    let web: Arc<WorkloadView> =
        decode(&json!({"metadata": {"name": "web", "uid": "web"}, "spec": {"replicas": 4}}));
    let known = Known::Found(web);
    let set = |name: &str| json!({"metadata": {"name": name, "uid": name}});
    let of = |name: &str, owner_name: &str| {
        pod(&json!({"/metadata/name": name, "/metadata/uid": name,
            "/metadata/ownerReferences": owner("ReplicaSet", owner_name)}))
    };
    let pods = [of("1", "web-1"), of("2", "web-2"), of("3", "other")];
    let spread = spread("apps/v1", "Deployment");
    assert_eq!(
        counts(
            &spread,
            &known,
            &Known::Gone,
            &pods,
            &[set("web-1"), set("web-2")]
        ),
        "2/0 0/-1"
    );
    let mut deleting = set("web-2");
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(
        counts(&spread, &known, &Known::Gone, &pods, &[set("web-1"), deleting]),
        "1/1 0/-1"
    );
    let direct = [of("1", "web")];
    assert_eq!(counts(&spread, &known, &Known::Gone, &direct, &[]), "1/1 0/-1");
}

#[test]
fn pods_of_another_kind_may_be_below_its_own_objects_and_still_count_when_none_are_wanted() {
    let game: Arc<WorkloadView> =
        decode(&json!({"metadata": {"name": "web", "uid": "web"}, "spec": {"replicas": 0}}));
    let below = pod(&json!({"/metadata/ownerReferences": [
        {"apiVersion": "example.com/v1", "kind": "Match", "name": "m", "uid": "m", "controller": true}]}));
    let spread = spread("example.com/v1", "Game");
    assert_eq!(
        counts(&spread, &Known::Found(game), &Known::Gone, &[below], &[]),
        "1/0 0/-1"
    );
}

#[test]
fn paths_of_a_kind_with_a_cache_are_read_from_the_stored_object() {
    let object = json!({"metadata": {"name": "web", "uid": "web"}, "spec": {"replicas": 2, "size": 6}});
    let web: Arc<WorkloadView> = decode(&object);
    let stored = Known::Found(Arc::new(WorkloadView {
        numbers: Some(Arc::new(numbers_of(&object))),
        ..WorkloadView::clone(&web)
    }));
    let mut spread = spread("apps.kruise.io/v1beta1", "CloneSet");
    spread["spec"]["targetFilter"] = json!({"replicasPathList": ["spec.size"]});
    assert_eq!(
        counts(&spread, &Known::Found(web.clone()), &stored, &[], &[]),
        "0/3 0/-1"
    );
    let unknown = counts(&spread, &Known::Found(web), &Known::NotYet, &[], &[]);
    assert_eq!(unknown, "nothing, and again Some(5)");
}
