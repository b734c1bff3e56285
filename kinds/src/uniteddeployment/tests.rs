//! Keys and inputs.

use std::sync::Arc;

use kruise_api::uniteddeployment::{Child, UnitedDeployment};
use kruise_runtime::Served;
use kruise_views::{MetadataView, OwnerView, PodView, SubsetView};
use kube_cache::{Delta, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Inputs, Pods, keys};
use kruise_runtime::parsed::Parsed;

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "name": name, "uid": uid, "controller": true})
}

fn workload(namespace: &str, name: &str, owners: &[Value]) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"),
        "labels": {"app": "api", "apps.kruise.io/subset-name": "a"}, "ownerReferences": owners}})
}

fn united(name: &str, app: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": name, "namespace": "shop", "uid": "u"},
        "spec": {"selector": {"matchLabels": {"app": app}}, "template": {"deploymentTemplate": {"spec": {}}}}})
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("shop", name)
}

#[test]
fn a_workload_enqueues_its_controller_and_an_orphan_all_that_select_it() {
    let all: Vec<Arc<Parsed<UnitedDeployment>>> =
        vec![decode(&united("api", "api")), decode(&united("web", "web"))];
    let of = |old: Option<Value>, new: Option<Value>| {
        let decode = |object: Option<Value>| object.map(|object| decode::<SubsetView>(&object));
        let delta = Delta {
            old: decode(old),
            new: decode(new),
        };
        keys::of_workload(&delta, |namespace| {
            assert_eq!(namespace, "shop");
            all.clone()
        })
    };
    let own = workload("shop", "a", &[owner("UnitedDeployment", "db", "x")]);
    let orphan = workload("shop", "a", &[]);
    let foreign = workload("shop", "a", &[owner("Rollout", "db", "x")]);
    assert_eq!(of(None, Some(own.clone())), [key("db")]);
    assert_eq!(of(Some(own.clone()), None), [key("db")]);
    assert_eq!(of(Some(own), Some(orphan.clone())), [key("db"), key("api")]);
    assert_eq!(of(None, Some(orphan.clone())), [key("api")]);
    assert_eq!(of(Some(orphan), None), []);
    assert_eq!(of(None, Some(foreign)), []);
}

#[test]
fn a_pod_enqueues_its_uniteddeployment_when_it_changes_in_what_a_plan_reads() {
    let pod = |version: &str, labels: Value, status: Value| {
        json!({"metadata": {"name": "p", "namespace": "shop", "uid": "p", "resourceVersion": version, "labels": labels,
            "ownerReferences": [owner("CloneSet", "a", "uid-a")]}, "status": status})
    };
    let of = |old: Option<Value>, new: Option<Value>| {
        let decode = |object: Option<Value>| object.map(|object| decode::<PodView>(&object));
        let delta = Delta {
            old: decode(old),
            new: decode(new),
        };
        keys::of_pod(&delta, |namespace, owner: &OwnerView| {
            assert_eq!((namespace, &*owner.name), ("shop", "a"));
            Some(key("api"))
        })
    };
    let subset = || json!({"apps.kruise.io/subset-name": "a"});
    let pending = || json!({"phase": "Pending"});
    assert_eq!(of(None, Some(pod("1", subset(), pending()))), Some(key("api")));
    assert_eq!(of(None, Some(pod("1", json!({}), pending()))), None);
    let heartbeat = of(
        Some(pod("1", subset(), pending())),
        Some(pod("2", subset(), pending())),
    );
    assert_eq!(heartbeat, None);
    let unschedulable = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    let refused = of(
        Some(pod("1", subset(), pending())),
        Some(pod("2", subset(), unschedulable)),
    );
    assert_eq!(refused, Some(key("api")));
}

#[test]
fn own_workloads_and_orphans_of_the_namespace_are_read_with_their_pods() {
    let united = UnitedDeployment::from_value(united("api", "api")).unwrap();
    let views = [
        workload("shop", "own", &[owner("UnitedDeployment", "api", "u")]),
        workload("shop", "orphan", &[]),
        workload("shop", "earlier", &[owner("UnitedDeployment", "api", "gone")]),
        workload("other", "restored", &[owner("UnitedDeployment", "api", "u")]),
    ];
    let all = views
        .iter()
        .map(|view| (Child::Deployment, decode::<SubsetView>(view)));
    let pods = Pods {
        of: &|uid| {
            let name = uid.to_owned();
            vec![decode::<PodView>(&json!({"metadata": {"name": name}}))]
        },
        replica_sets: &|uid| {
            let set = json!({"metadata": {"name": "rs", "uid": format!("rs of {uid}")}});
            vec![decode::<MetadataView>(&set)]
        },
    };
    let inputs = Inputs::new(&united, &Served::default(), all.collect(), &pods, Vec::new());
    let read: Vec<(&str, &str)> = inputs
        .workloads
        .iter()
        .map(|workload| (&*workload.view.name, &*workload.pods[0].name))
        .collect();
    assert_eq!(read, [("own", "rs of uid-own"), ("orphan", "rs of uid-orphan")]);
}
