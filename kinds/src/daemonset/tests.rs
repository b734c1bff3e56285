use std::sync::Arc;

use kruise_api::daemonset::DaemonSet;
use kruise_plan_kit::{Memory, Plan, ResourceId, Write};
use kruise_plan_workloads::daemonset::{Explain, Options};
use kruise_views::{NodeView, PodView, RevisionView};
use kube_cache::{Delta, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Inputs, keys};
use crate::placing::Placing;
use kruise_runtime::parsed::Parsed;

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn set(name: &str, spec: &Value, update: &Value) -> Arc<Parsed<Placing<DaemonSet>>> {
    decode(&json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
        "spec": {"selector": {"matchLabels": {"app": name}}, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": update},
                 "template": {"metadata": {"labels": {"app": name}}, "spec": spec}},
    }))
}

/// `all` runs everywhere, `ssd` and `fast` on nodes with such a disk, `canary` selects nodes for its update.
fn sets() -> Vec<Arc<Parsed<Placing<DaemonSet>>>> {
    let none = json!({});
    let ssd = json!({"nodeSelector": {"disk": "ssd"}});
    let canary = json!({"selector": {"matchLabels": {"type": "canary"}}});
    vec![
        set("all", &none, &none),
        set("canary", &none, &canary),
        set("fast", &ssd, &none),
        set("ssd", &ssd, &none),
    ]
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn node(change: impl FnOnce(&mut Value)) -> Option<Arc<NodeView>> {
    let images: Vec<Value> = (0..50)
        .map(|n| json!({"names": [format!("registry/image-{n}")], "sizeBytes": n}))
        .collect();
    let mut node = json!({
        "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"disk": "ssd"}},
        "spec": {}, "status": {"images": images, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    change(&mut node);
    Some(decode(&node))
}

fn of_node(old: Option<Arc<NodeView>>, new: Option<Arc<NodeView>>) -> String {
    names(&keys::of_node(&Delta { old, new }, &sets))
}

fn names(keys: &[ObjectKey]) -> String {
    let names: Vec<&str> = keys.iter().map(|key| &*key.name).collect();
    names.join(" ")
}

#[test]
fn a_node_that_joins_or_leaves_enqueues_the_sets_that_may_run_there() {
    assert_eq!(of_node(None, node(|_| ())), "all canary fast ssd");
    assert_eq!(of_node(node(|_| ()), None), "all canary fast ssd");
    let plain = || node(|node| node["metadata"]["labels"] = json!({}));
    assert_eq!(of_node(None, plain()), "all canary");
    assert_eq!(of_node(plain(), None), "all canary");
}

#[test]
fn only_the_sets_are_enqueued_whose_verdict_changed() {
    let hdd = || node(|node| node["metadata"]["labels"]["disk"] = json!("hdd"));
    assert_eq!(of_node(node(|_| ()), hdd()), "fast ssd");
    let canary = || node(|node| node["metadata"]["labels"]["type"] = json!("canary"));
    assert_eq!(of_node(node(|_| ()), canary()), "canary");
    let other = || node(|node| node["metadata"]["labels"]["other"] = json!("x"));
    assert_eq!(of_node(node(|_| ()), other()), "");
    let tainted = || node(|node| node["spec"]["taints"] = json!([{"key": "gpu", "effect": "NoSchedule"}]));
    assert_eq!(of_node(node(|_| ()), tainted()), "all canary fast ssd");
    let cordoned = || {
        node(|node| {
            node["spec"] = json!({"unschedulable": true,
                "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]});
        })
    };
    assert_eq!(of_node(node(|_| ()), cordoned()), "", "daemons tolerate that");
}

#[test]
fn a_heartbeat_of_a_node_with_many_images_enqueues_nothing_and_looks_at_no_set() {
    let heartbeat = node(|node| {
        node["metadata"]["resourceVersion"] = json!("8");
        node["status"]["conditions"][0]["lastHeartbeatTime"] = json!("2026-01-01T00:00:10Z");
    });
    let delta = Delta {
        old: node(|_| ()),
        new: heartbeat,
    };
    let keys = keys::of_node(&delta, &|| panic!("no set is looked at"));
    assert!(keys.is_empty());
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn pod(owner: Option<(&str, &str)>, app: &str) -> Option<Arc<PodView>> {
    let owners: Vec<Value> = owner
        .into_iter()
        .map(|(version, name)| json!({"apiVersion": version, "kind": "DaemonSet", "name": name, "uid": "u", "controller": true}))
        .collect();
    Some(decode(
        &json!({"metadata": {"name": "p", "namespace": "shop", "labels": {"app": app}, "ownerReferences": owners}}),
    ))
}

fn of_pod(old: Option<Arc<PodView>>, new: Option<Arc<PodView>>) -> String {
    let sets_in = |namespace: &str| if namespace == "shop" { sets() } else { Vec::new() };
    names(&keys::of_pod(&Delta { old, new }, &sets_in))
}

#[test]
fn pods_enqueue_their_set_whichever_version_their_owner_references_name() {
    for version in ["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"] {
        let owned = || pod(Some((version, "ssd")), "ssd");
        assert_eq!(of_pod(owned(), None), "ssd", "{version}");
        assert_eq!(of_pod(None, owned()), "ssd", "{version}");
    }
    assert_eq!(
        of_pod(None, pod(Some(("apps/v1", "ssd")), "ssd")),
        "",
        "another kind"
    );
}

#[test]
fn pods_that_nobody_controls_enqueue_the_sets_that_select_them() {
    let orphan = || pod(None, "ssd");
    let owned = pod(Some(("apps.kruise.io/v1beta1", "all")), "ssd");
    assert_eq!(of_pod(None, orphan()), "ssd");
    assert_eq!(of_pod(orphan(), None), "ssd");
    assert_eq!(of_pod(owned, orphan()), "all ssd", "the old owner, too");
    assert_eq!(of_pod(pod(None, "none"), orphan()), "ssd");
    assert_eq!(of_pod(orphan(), orphan()), "", "nothing of interest changed");
}

/// The revision that a plan creates.
fn new_revision(plan: &Plan) -> Value {
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let mut created = steps.filter_map(|step| match &step.write {
        Write::Create { target, body, .. } if target.resource == ResourceId::REVISIONS => Some(body.render()),
        _ => None,
    });
    created.next().expect("a revision is created")
}

#[test]
fn a_revision_of_somebody_else_is_not_taken_though_it_has_the_name_and_the_template() {
    let cached = set(
        "agent",
        &json!({"containers": [{"name": "main", "image": "agent:1"}]}),
        &json!({}),
    );
    let set = &cached.object.as_ref().unwrap().object;
    let plan = |revisions: Vec<Arc<RevisionView>>, memory: &Memory| {
        let inputs = Inputs::new(set, Vec::new(), Vec::new(), revisions);
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        inputs.plan(
            set,
            "apps.kruise.io/v1beta1",
            Options::DEFAULT,
            memory,
            Explain::No,
            now,
        )
    };
    let mut stored = new_revision(&plan(Vec::new(), &Memory::default()));
    let name = stored["metadata"]["name"].as_str().unwrap().to_owned();
    stored["metadata"]["uid"] = json!("r");
    stored["metadata"]["resourceVersion"] = json!("3");
    stored["metadata"]["ownerReferences"][0]["uid"] = json!("somebody-else");
    // It is wanted nevertheless, and the server says that its name is taken.
    let revisions = vec![decode::<RevisionView>(&stored)];
    let wanted = new_revision(&plan(revisions.clone(), &Memory::default()));
    assert_eq!(wanted["metadata"]["name"], name);
    let memory = Memory {
        taken_names: [name.clone()].into(),
        ..Memory::default()
    };
    let next = plan(revisions, &memory);
    let other = new_revision(&next);
    assert_ne!(other["metadata"]["name"], name);
    assert_eq!(other["data"], stored["data"]);
    let status = next.status.unwrap().patch;
    assert_eq!(status["status"]["collisionCount"], 1);
    assert_eq!(
        status["status"]["updateRevision"],
        other["metadata"]["labels"]["controller-revision-hash"]
    );
}
