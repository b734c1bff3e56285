use jiff::Timestamp;
use kruise_api::sidecarset::SidecarSet;
use kruise_plan_kit::{
    Intent, Memory, ObjectWrites, Phase, Plan, Precondition, Target, Write, sidecars::names,
};
use kruise_runtime::{
    metrics::Metrics,
    worker::{Outcome, Reconciler},
};
use kube_cache::{Delta, Event, Version};
use prometheus_client::registry::Registry;
use serde_json::json;

use super::*;
use crate::webhook_caches::testing::{empty, fill, fill_with};

/// A reconciler whose caches have the SidecarSet `logs` and a pod without its sidecars, and its metrics.
fn sets(injects: bool) -> (SidecarSets, Registry) {
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
        "metadata": {"name": "logs", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "log", "image": "log:1"}]}});
    let caches = empty(Some("v1beta1"));
    fill_with(&caches, &[set], &[], &[]);
    let pod = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "p", "resourceVersion": "1",
        "labels": {"app": "web"}, "creationTimestamp": "2026-01-01T01:00:00Z"}});
    let (page, version) = (vec![serde_json::from_value(pod).unwrap()], Version::new(1));
    let pods = SharedInformer::new([PODS_BY_SIDECARSET]);
    for event in [Event::ListStarted, Event::Page(page), Event::ListDone { version }] {
        pods.apply(event).unwrap();
    }
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, &[&UNINJECTED]);
    let sets = SidecarSets {
        sets: caches.sidecarsets,
        namespaces: caches.namespaces,
        revisions: caches.revisions,
        pods,
        budgets: CachedBudgets::default(),
        served: Arc::new([(&kruise_api::sidecarset::KIND, "v1beta1")].into_iter().collect()),
        namespace: "system".into(),
        uninjected_metric: metrics.objects(&UNINJECTED),
        uninjected: Uninjected::default(),
        write_locks: Mutex::default(),
        injects,
        repairs: Mutex::default(),
    };
    (sets, registry)
}

fn counted(registry: &Registry) -> Option<String> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("kruise_sidecarset_uninjected_pods{"))?;
    line.split_once(' ').map(|(_, count)| count.to_owned())
}

fn reconcile(sets: &SidecarSets) {
    let now = "2026-01-01T02:00:00Z".parse().unwrap();
    let outcome = sets.reconcile(&ObjectKey::new("", "logs"), &Memory::default(), now);
    assert!(matches!(outcome, Outcome::Plan(_)));
}

#[tokio::test]
async fn without_the_pod_webhook_no_pod_counts_as_uninjected() {
    for (injects, pods) in [(true, "1"), (false, "0")] {
        let (sets, registry) = sets(injects);
        reconcile(&sets);
        assert_eq!(counted(&registry).as_deref(), Some(pods));
    }
}

/// Replaces the SidecarSet `logs` by one that cannot be parsed.
fn break_logs(sets: &SidecarSets) {
    let broken = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
        "metadata": {"name": "logs", "uid": "u0", "resourceVersion": "200"}, "spec": {"containers": 1}});
    let broken = serde_json::from_value(broken).unwrap();
    sets.sets.apply(Event::Modified(broken)).unwrap();
    reconcile(sets);
}

#[tokio::test]
async fn an_invalid_sidecarset_has_no_uninjected_metric() {
    let (sets, registry) = sets(true);
    reconcile(&sets);
    break_logs(&sets);
    assert_eq!(counted(&registry), None);
}

#[tokio::test]
async fn repairs_of_an_earlier_sidecarset_of_the_same_name_do_not_count() {
    let (sets, _) = sets(true);
    let key = ObjectKey::new("", "logs");
    let tried = Repairs::since(Timestamp::UNIX_EPOCH);
    for (of, kept) in [("u0", true), ("before", false)] {
        sets.repairs().insert(key.clone(), (of.to_owned(), tried.clone()));
        reconcile(&sets);
        let (of, repairs) = sets.repairs().get(&key).cloned().unwrap();
        assert_eq!(of, "u0");
        assert_eq!(repairs == tried, kept);
    }
}

/// A plan that deletes a pod.
fn deletion() -> Plan {
    let write = Write::Delete {
        intent: Intent::DELETE_POD,
        target: Target {
            resource: ResourceId::PODS,
            namespace: "shop".into(),
            name: "web".into(),
        },
        precondition: Precondition::UidAndVersion("p".into(), "1".into()),
    };
    Plan {
        writes: vec![ObjectWrites::alone(Phase::Pods, write, "")],
        ..Plan::default()
    }
}

#[tokio::test]
async fn a_deleted_or_invalid_sidecarset_holds_no_write_lock() {
    let (sets, _) = sets(true);
    let may_write = |set: &str| {
        let mut plan = deletion();
        sets.write_locks().lock(set, &mut plan, &Memory::default());
        !plan.writes.is_empty()
    };
    assert!(may_write("gone") && !may_write("other"));
    let outcome = sets.reconcile(
        &ObjectKey::new("", "gone"),
        &Memory::default(),
        Timestamp::UNIX_EPOCH,
    );
    assert!(matches!(outcome, Outcome::Gone));
    assert!(may_write("other"));
    sets.write_locks().release("other");
    assert!(may_write("logs") && !may_write("other"));
    break_logs(&sets);
    assert!(may_write("other"));
}

fn read<T: serde::de::DeserializeOwned>(object: &serde_json::Value) -> Arc<T> {
    Arc::new(serde_json::from_value(object.clone()).unwrap())
}

#[test]
fn revisions_are_read_from_the_managers_namespace() {
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet",
                     "metadata": {"name": "s", "uid": "u"}, "spec": {}});
    let revision = json!({"metadata": {"name": "s-1", "namespace": "system", "uid": "r", "resourceVersion": "1", "labels": {names::SET_NAME: "s"}},
                          "revision": 1, "data": {"spec": {}}});
    let (sets, _) = sets(true);
    fill(&sets.revisions, vec![serde_json::from_value(revision).unwrap()]);
    let cached: Arc<CachedSidecarSet> = read(&set);
    let inputs = sets.read_inputs(&cached, &SidecarSet::from_json(&set).unwrap());
    let found: Vec<_> = inputs
        .revisions
        .iter()
        .map(|one| (&*one.name, one.number, &*one.data))
        .collect();
    assert_eq!(found, [("s-1", 1, r#"{"spec":{}}"#)]);
}

#[test]
fn a_new_or_relabelled_namespace_enqueues_sidecarsets_with_a_namespace_selector() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let set = |name: &str, spec| read(&json!({"metadata": {"name": name}, "spec": spec}));
    let sets = [
        set(
            "some",
            json!({"selector": selector, "namespaceSelector": selector}),
        ),
        set("all", json!({"selector": selector})),
    ];
    let namespace = |team: &str| read(&json!({"metadata": {"name": "n", "labels": {"team": team}}}));
    let enqueued = |old, new| keys::of_namespace(&Delta { old, new }, &sets);
    let some = [ObjectKey::new("", "some")];
    assert_eq!(enqueued(None, Some(namespace("x"))), some);
    assert_eq!(enqueued(Some(namespace("x")), Some(namespace("y"))), some);
    assert_eq!(enqueued(Some(namespace("x")), Some(namespace("x"))), []);
    assert_eq!(enqueued(Some(namespace("x")), None), []);
}
