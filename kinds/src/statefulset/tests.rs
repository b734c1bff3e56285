//! Which changes enqueue which StatefulSets, and what a plan reads of the caches.

use kruise_frame::{caches::PODS_BY_OWNER, gates::Gates};
use kruise_install::manifests::rules_of_controllers;
use kruise_plan_kit::Memory;
use kruise_runtime::worker::{Outcome, Reconciler};
use kube_cache::{Cached, Delta, Event, Index, Version};
use serde_json::{Value, json};

use super::*;
use crate::imagepulljob::cached::PULL_JOBS_BY_OWNER;

fn cache<T: Cached>(
    indexes: impl IntoIterator<Item = Index<T>>,
    objects: impl IntoIterator<Item = T>,
) -> SharedInformer<T> {
    let informer = SharedInformer::new(indexes);
    let page = objects.into_iter().collect();
    let version = Version::new(9);
    for event in [Event::ListStarted, Event::Page(page), Event::ListDone { version }] {
        informer.apply(event).unwrap();
    }
    informer
}

fn parse<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

fn set(namespace: &str, name: &str, strategy: &str) -> Parsed<StatefulSet> {
    parse(json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("{name}-uid"), "resourceVersion": "1"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
            "volumeClaimUpdateStrategy": {"type": strategy},
        },
    }))
}

/// A reconciler of these sets, on a cluster with these pods and claims.
fn sets(sets: Vec<Parsed<StatefulSet>>, pods: Vec<PodView>, claims: Vec<ClaimView>) -> StatefulSets {
    StatefulSets {
        sets: cache([], sets),
        revisions: cache([], []),
        claims: cache([CLAIMS_BY_SET_NAME], claims),
        classes: cache([], []),
        pull_jobs: cache([PULL_JOBS_BY_OWNER], []),
        pods: cache([PODS_BY_OWNER, PODS_BY_SET_NAME], pods),
        budgets: CachedBudgets::default(),
        served: Arc::new(
            [(&kruise_api::statefulset::KIND, "v1beta1")]
                .into_iter()
                .collect(),
        ),
        options: Options::DEFAULT,
    }
}

fn web() -> StatefulSets {
    let all = vec![
        set("shop", "web", "OnPodRollingUpdate"),
        set("shop", "my-web", ""),
        set("other", "web", ""),
    ];
    sets(all, Vec::new(), Vec::new())
}

/// Pod of namespace `shop`, controlled by the set of this name or by nobody.
fn pod(name: &str, owner: Option<(&str, &str)>) -> Value {
    let owners: Vec<Value> = owner
        .into_iter()
        .map(|(kind, name)| {
            json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "name": name,
                   "uid": format!("{name}-uid"), "controller": true})
        })
        .collect();
    json!({"metadata": {"namespace": "shop", "name": name, "uid": format!("{name}-pod"),
                        "resourceVersion": "2", "ownerReferences": owners}})
}

fn of_pods(old: Option<Value>, new: Option<Value>) -> Vec<String> {
    let pod = |object: Option<Value>| object.map(|object| Arc::new(parse(object)));
    let delta = Delta {
        old: pod(old),
        new: pod(new),
    };
    let this = web();
    let keys = keys::of_pod(&delta, &|key| this.find(key));
    keys.iter().map(ToString::to_string).collect()
}

/// Pod `web-1` after a change, as [`pod`] but for this member of its metadata.
fn changed(owner: Option<(&str, &str)>, member: &str, value: Value) -> Value {
    let mut changed = pod("web-1", owner);
    changed["metadata"]["resourceVersion"] = json!("3");
    changed["metadata"][member] = value;
    changed
}

#[test]
fn every_change_of_a_pod_enqueues_the_set_that_controls_it() {
    let own = || pod("web-1", Some(("StatefulSet", "web")));
    let changed = changed(Some(("StatefulSet", "web")), "annotations", json!({"a": "b"}));
    for (old, new) in [
        (None, Some(own())),
        (Some(own()), None),
        (Some(own()), Some(changed)),
    ] {
        assert_eq!(of_pods(old.clone(), new.clone()), ["shop/web"], "{old:?} {new:?}");
    }
    let of_other_name = pod("x", Some(("StatefulSet", "web")));
    assert_eq!(of_pods(None, Some(of_other_name)), ["shop/web"]);
    // Both owners learn of a pod that changes hands.
    let moved = pod("web-1", Some(("StatefulSet", "my-web")));
    assert_eq!(of_pods(Some(own()), Some(moved)), ["shop/my-web", "shop/web"]);
}

#[test]
fn a_pod_without_a_controller_enqueues_the_set_whose_name_it_has_when_its_labels_or_its_existence_change() {
    let orphan = || pod("web-1", None);
    let labelled = changed(None, "labels", json!({"app": "web"}));
    let noted = changed(None, "annotations", json!({"a": "b"}));
    let terminating = changed(None, "deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    for (old, new, is_news) in [
        (None, Some(orphan()), true),
        (Some(orphan()), None, true),
        (Some(orphan()), Some(labelled), true),
        (Some(orphan()), Some(terminating), true),
        (Some(orphan()), Some(noted), false),
    ] {
        let expected: &[&str] = if is_news { &["shop/web"] } else { &[] };
        assert_eq!(of_pods(old, new.clone()), expected, "{new:?}");
    }
    for name in ["web-01", "web-x", "db-1"] {
        assert_eq!(of_pods(None, Some(pod(name, None))), [""; 0], "{name}");
    }
}

#[test]
fn a_pod_of_another_controller_enqueues_the_set_that_waits_for_its_name_when_it_appears_or_goes_or_is_released()
 {
    let foreign = || pod("web-1", Some(("CloneSet", "app")));
    let labelled = changed(Some(("CloneSet", "app")), "labels", json!({"app": "web"}));
    for (old, new, is_news) in [
        (None, Some(foreign()), true),
        (Some(foreign()), None, true),
        (Some(foreign()), Some(pod("web-1", None)), true),
        (Some(foreign()), Some(labelled), false),
    ] {
        let expected: &[&str] = if is_news { &["shop/web"] } else { &[] };
        assert_eq!(of_pods(old, new.clone()), expected, "{new:?}");
    }
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "2"},
           "spec": {"resources": {"requests": {"storage": "1Gi"}}}})
}

#[test]
fn a_claim_enqueues_the_sets_with_a_template_that_its_name_fits_if_plans_read_what_changed() {
    let of = |old: Option<Value>, new: Option<Value>| -> Vec<String> {
        let claim = |object: Option<Value>| object.map(|object| Arc::new(parse(object)));
        let delta = Delta {
            old: claim(old),
            new: claim(new),
        };
        let this = web();
        let keys = keys::of_claim(&delta, &|key| this.find(key));
        keys.iter().map(ToString::to_string).collect()
    };
    assert_eq!(of(None, Some(claim("data-web-0"))), ["shop/web"]);
    assert_eq!(of(Some(claim("data-web-0")), None), ["shop/web"]);
    // The set `web` has no claim template `data-my`.
    assert_eq!(of(None, Some(claim("data-my-web-0"))), ["shop/my-web"]);
    for name in ["logs-web-0", "data-db-0", "data-web", "data-web-x", "web-0"] {
        assert_eq!(of(None, Some(claim(name))), [""; 0], "{name}");
    }
    let changed = |pointer: &str, value: Value| {
        let mut changed = claim("data-web-0");
        changed["metadata"]["resourceVersion"] = json!("3");
        changed["status"] = json!({});
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[member] = value;
        of(Some(claim("data-web-0")), Some(changed))
    };
    for (pointer, value) in [
        ("/status/capacity", json!({"storage": "1Gi"})),
        ("/spec/resources/requests/storage", json!("2Gi")),
        (
            "/metadata/ownerReferences",
            json!([{"kind": "Pod", "name": "web-0", "uid": "u"}]),
        ),
        ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        (
            "/status/conditions",
            json!([{"type": "FileSystemResizePending", "status": "True"}]),
        ),
    ] {
        assert_eq!(changed(pointer, value), ["shop/web"], "{pointer}");
    }
    for (pointer, value) in [
        (
            "/metadata/annotations",
            json!({"pv.kubernetes.io/bind-completed": "yes"}),
        ),
        ("/status/phase", json!("Bound")),
        ("/spec/volumeName", json!("pv-1")),
    ] {
        assert_eq!(changed(pointer, value), [""; 0], "{pointer}");
    }
}

#[test]
fn a_class_enqueues_the_sets_that_resize_their_claims_when_its_volumes_can_grow_or_cannot_any_more() {
    let class = |expands: bool| -> Arc<StorageClassView> {
        let object = json!({"metadata": {"name": "fast", "uid": "c"}, "allowVolumeExpansion": expands});
        Arc::new(parse(object))
    };
    let this = web();
    let of = |old: Option<bool>, new: Option<bool>| -> Vec<String> {
        let delta = Delta {
            old: old.map(class),
            new: new.map(class),
        };
        let keys = keys::of_class(&delta, &this.all());
        keys.iter().map(ToString::to_string).collect()
    };
    for (old, new) in [
        (None, Some(true)),
        (Some(true), None),
        (Some(false), Some(true)),
        (Some(true), Some(false)),
    ] {
        assert_eq!(of(old, new), ["shop/web"], "{old:?} {new:?}");
    }
    assert_eq!(of(Some(true), Some(true)), [""; 0]);
}

#[test]
fn a_plan_reads_the_pods_of_the_set_those_that_have_their_names_and_the_claims_of_both() {
    let elsewhere = |mut pod: Value| {
        pod["metadata"]["namespace"] = json!("other");
        pod["metadata"]["uid"] = json!("elsewhere");
        pod
    };
    let pods = [
        pod("web-0", Some(("StatefulSet", "web"))),
        pod("web-1", None),
        pod("web-2", Some(("CloneSet", "app"))),
        pod("renamed", Some(("StatefulSet", "web"))),
        pod("my-web-0", Some(("StatefulSet", "my-web"))),
        pod("app", None),
        elsewhere(pod("web-0", None)),
    ];
    let claims = ["data-web-0", "data-my-web-0", "data-db-0"].map(claim);
    let this = sets(
        vec![set("shop", "web", "")],
        pods.into_iter().map(parse).collect(),
        claims.into_iter().map(parse).collect(),
    );
    let web = this.find(&ObjectKey::new("shop", "web")).unwrap();
    let inputs = this.read_inputs(web.object.as_ref().unwrap());
    let mut own: Vec<&str> = inputs.pods().iter().map(|pod| &*pod.name).collect();
    own.sort_unstable();
    assert_eq!(own, ["renamed", "web-0", "web-1"]);
    let found = |name: &str| inputs.find_pod(name).map(|pod| pod.uid.to_string());
    assert_eq!(found("web-0").as_deref(), Some("web-0-pod"));
    assert_eq!(found("web-2").as_deref(), Some("web-2-pod"));
    assert_eq!(found("web-3"), None);
    let claim = |name: &str| inputs.find_claim(name).is_some();
    assert!(claim("data-web-0") && !claim("data-web-1") && !claim("data-db-0"));
}

#[test]
fn a_set_that_cannot_be_read_is_an_event_and_a_set_that_is_gone_is_forgotten() {
    let broken = parse(json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet",
        "metadata": {"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "1"},
        "spec": {"replicas": "three"},
    }));
    let this = sets(vec![broken], Vec::new(), Vec::new());
    let key = ObjectKey::new("shop", "web");
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let Outcome::Plan(plan) = this.reconcile(&key, &Memory::default(), now) else {
        panic!("a plan")
    };
    assert!(plan.writes.is_empty() && plan.events[0].message.contains("three"));
    let about = this.about(&key).unwrap();
    assert_eq!(
        (&*about.kind, &*about.api_version),
        ("StatefulSet", "apps.kruise.io/v1beta1")
    );
    assert_eq!(this.keys(), [key]);
    let gone = this.reconcile(&ObjectKey::new("shop", "db"), &Memory::default(), now);
    assert!(matches!(gone, Outcome::Gone));
}

#[test]
fn it_may_do_what_it_does_and_nothing_else() {
    let rights = |gates: &str| -> Vec<String> {
        let gates = Gates::parse(gates, "").unwrap();
        let rules = rules_of_controllers(&[&REGISTRATION], &gates);
        let texts = rules.iter().map(|rule| {
            let verbs = rule["verbs"].as_array().unwrap().iter();
            let verbs: Vec<&str> = verbs.map(|verb| verb.as_str().unwrap()).collect();
            format!("{}: {}", rule["resources"][0].as_str().unwrap(), verbs.join(" "))
        });
        texts.collect()
    };
    let always = [
        "persistentvolumeclaims: create delete get list patch watch",
        "pods: create delete get list patch watch",
        "pods/resize: patch",
        "pods/status: patch",
        "podtemplates: create",
        "controllerrevisions: create delete get list patch watch",
        "statefulsets: get list watch",
        "statefulsets/finalizers: update",
        "statefulsets/status: patch",
        "podunavailablebudgets: get list watch",
        "podunavailablebudgets/status: patch",
    ];
    assert_eq!(rights(""), always);
    let with_gates = rights("StatefulSetAutoResizePVCGate=true,PreDownloadImageForInPlaceUpdate=true");
    let more: Vec<&String> = with_gates
        .iter()
        .filter(|right| !always.contains(&right.as_str()))
        .collect();
    let expected = [
        "imagepulljobs: create delete get list watch",
        "storageclasses: get list watch",
    ];
    assert_eq!(more, expected);
}
