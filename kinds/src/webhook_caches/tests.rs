use kruise_admission::{
    Lookups, Request,
    lookup::{Lookup, LookupResult},
    pod::sidecars::{Reach, condition, decisions},
};
use kruise_plan_kit::sidecars::names;
use kruise_server::configuration::widening::Stored;
use kruise_sim::{Config, Method, Options, Outcome, World};
use kube_cache::Event;
use serde_json::json;

use super::testing::{empty, fill, filled, of_cluster, read_all};
use super::*;

fn set(name: &str, spec: Value) -> Value {
    let mut set = json!({"metadata": {"name": name}, "spec": spec});
    set["spec"]["containers"] = json!([{"name": format!("of-{name}"), "image": "i"}]);
    set
}

#[test]
fn an_unserved_kind_needs_no_webhook_for_injection() {
    let condition = |version| empty(version).desired.borrow().clone();
    assert_eq!(condition(None), DesiredCondition::Absent);
    assert_eq!(condition(Some("v1beta1")), DesiredCondition::Unmanaged);
}

#[test]
fn before_the_first_list_there_is_no_result_and_an_unserved_kind_has_no_objects() {
    assert!(empty(Some("v1alpha1")).sorted_sets().is_none());
    assert_eq!(empty(None).sorted_sets().unwrap().iter().count(), 0);
}

#[test]
fn a_spread_needs_its_new_pods_and_the_evictions_of_its_namespace_unless_its_gate_is_off() {
    let caches = |workload_spread| {
        let options = kruise_admission::Options {
            workload_spread,
            ..kruise_admission::Options::DEFAULT
        };
        of_cluster(&[(&kruise_api::workloadspread::KIND, "v1beta1")], &options)
    };
    let on = caches(true);
    assert_eq!(on.reaches(), None, "the first list is not complete");
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spread = json!({"apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetRef": target, "subsets": [{"name": "a"}]}});
    fill(&on.spreads.cache, read_all(&[spread]));
    let (pods, evictions) = on.reaches().unwrap();
    let pods = condition(&pods).unwrap();
    assert!(
        pods.contains("request.namespace == 'shop'") && pods.contains("'ReplicaSet'"),
        "{pods}"
    );
    let evictions = disruption::condition(&evictions);
    assert_eq!(evictions.as_deref(), Some("request.namespace == 'shop'"));
    assert_eq!(caches(false).reaches(), Some((BTreeSet::new(), BTreeSet::new())));
}

#[test]
fn a_marker_needs_its_new_pods_where_they_have_their_probes_in_annotations() {
    let caches = |serverless_probes| {
        let options = kruise_admission::Options {
            serverless_probes,
            ..kruise_admission::Options::DEFAULT
        };
        of_cluster(&[(&kruise_api::podprobemarker::KIND, "v1alpha1")], &options)
    };
    let on = caches(true);
    assert_eq!(on.reaches(), None, "the first list is not complete");
    let marker = |name: &str, selector: Value| {
        json!({"apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"selector": selector, "probes": []}})
    };
    let markers = [
        marker("web", json!({"matchLabels": {"app": "web"}})),
        marker("none", json!({})),
    ];
    fill(on.probe_markers.as_ref().unwrap(), read_all(&markers));
    let (pods, evictions) = on.reaches().unwrap();
    let pods = condition(&pods).unwrap();
    assert!(
        pods.contains("request.namespace == 'shop'") && pods.contains("'web'"),
        "{pods}"
    );
    assert!(
        pods.contains("'kruise.io/podprobemarker-list' in object.metadata.annotations"),
        "{pods}"
    );
    assert_eq!(evictions, BTreeSet::new());
    assert_eq!(caches(false).reaches(), Some((BTreeSet::new(), BTreeSet::new())));
}

#[test]
fn a_changed_sidecarset_is_in_the_next_result() {
    let caches = filled(&[set("a", json!({}))], &[], &[]);
    let names = || {
        let sets = caches.sorted_sets().unwrap();
        sets.iter().map(|set| set.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["a"]);
    let mut more = read_all::<CachedSidecarSet>(&[json!({}), set("b", json!({}))]);
    more[1].metadata.resource_version = "101".to_owned();
    caches.sidecarsets.apply(Event::Added(more.remove(1))).unwrap();
    caches.sorted.invalidate();
    assert_eq!(names(), ["a", "b"]);
}

#[test]
fn revisions_are_found_by_name_and_the_newest_by_version() {
    let revision = |name: &str, number: i64, set: &str| {
        let labels = json!({names::SET_NAME: set, names::CUSTOM_VERSION: "v1"});
        json!({"metadata": {"name": name, "namespace": "ns", "labels": labels, "managedFields": [{}]},
               "revision": number})
    };
    let all = [
        revision("a-1", 1, "a"),
        revision("a-2", 2, "a"),
        revision("b-3", 3, "b"),
    ];
    let caches = filled(&[], &[], &all);
    let find = |wanted: Revision| {
        caches.revision("ns", &wanted).map(|one| {
            assert_eq!(one["metadata"].get("managedFields"), None);
            one["metadata"]["name"].clone()
        })
    };
    let versioned = |set: &str, version: &str| {
        Revision::Newest(vec![
            (names::SET_NAME, set.to_owned()),
            (names::CUSTOM_VERSION, version.to_owned()),
        ])
    };
    assert_eq!(find(Revision::Named("b-3".into())), Some(json!("b-3")));
    assert_eq!(find(Revision::Named("c".into())), None);
    assert_eq!(find(versioned("a", "v1")), Some(json!("a-2")));
    assert_eq!(find(versioned("a", "v2")), None);
}

#[tokio::test(start_paused = true)]
async fn the_match_condition_is_published_when_it_changes_and_becomes_narrower_after_a_minute() {
    let selector = json!({"selector": {"matchLabels": {"app": "web"}}});
    let caches = filled(&[set("a", selector)], &[], &[]);
    let mut conditions = caches.desired.subscribe();
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(caches.clone().derive_match_conditions(|_, _, _| (), stopped));
    conditions.changed().await.unwrap();
    let first = conditions.borrow_and_update().clone();
    assert!(
        matches!(&first, DesiredCondition::Expression(text) if text.contains("l['app'] == 'web'")),
        "{first:?}"
    );

    let version = |number: &str, spec: Value| {
        let mut cached = read_all::<CachedSidecarSet>(&[set("a", spec)]).remove(0);
        cached.metadata.resource_version = number.to_owned();
        cached
    };
    let same_pods = json!({"selector": {"matchLabels": {"app": "web"}}, "customVersion": "2"});
    caches
        .sidecarsets
        .apply(Event::Modified(version("101", same_pods)))
        .unwrap();
    caches.sorted.invalidate();
    let paused = json!({"selector": {"matchLabels": {"app": "web"}}, "injectionStrategy": {"paused": true}});
    caches
        .sidecarsets
        .apply(Event::Modified(version("102", paused)))
        .unwrap();
    caches.sorted.invalidate();
    let begun = Instant::now();
    let now = Timestamp::UNIX_EPOCH;
    let widened = Widened {
        webhook: PODS_OF_SETS.to_owned(),
        expression: "true".to_owned(),
        until: now + KEPT,
        object: Stored::default(),
    };
    caches.conditions_are_widened(&[widened], now);
    conditions.changed().await.unwrap();
    assert_eq!(*conditions.borrow_and_update(), DesiredCondition::Absent);
    assert_eq!(begun.elapsed(), Duration::from_mins(1));
    conditions.changed().await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(62), "widenings have expired");
    let more = tokio::time::timeout(Duration::from_hours(1), conditions.changed());
    assert!(more.await.is_err());
    stop.send_replace(true);
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_set_that_another_replica_has_reviewed_is_awaited_until_the_cache_has_it() {
    let caches = filled(&[], &[], &[]);
    let cache = ReviewCache {
        webhook_caches: caches.clone(),
        pods: SharedInformer::new([]),
        nodes: SharedInformer::new([]),
        workloads: None,
        namespace: "ns".into(),
    };
    let is_believed = || matches!(cache.get(&Lookup::all::<Set>("")), Cached::Found(_));
    let now = Timestamp::UNIX_EPOCH;
    let reviewed = |ago: i64| {
        let widened = Widened {
            webhook: PODS_OF_SETS.to_owned(),
            expression: "true".to_owned(),
            until: now + KEPT - Duration::from_secs(ago.unsigned_abs()),
            object: Stored {
                kind: "SidecarSet".to_owned(),
                name: "a".to_owned(),
                uid: "u0".to_owned(),
                generation: 2,
                ..Stored::default()
            },
        };
        caches.conditions_are_widened(&[widened], now);
    };
    assert!(is_believed());
    reviewed(1);
    assert!(!is_believed());
    let stored = |generation: i64, version: &str| {
        let mut cached = read_all::<CachedSidecarSet>(&[set("a", json!({}))]).remove(0);
        cached.metadata.generation = generation;
        cached.metadata.resource_version = version.to_owned();
        cached
    };
    caches.sidecarsets.apply(Event::Added(stored(1, "101"))).unwrap();
    assert!(!is_believed(), "it is to be changed");
    caches
        .sidecarsets
        .apply(Event::Modified(stored(2, "102")))
        .unwrap();
    assert!(is_believed());
    caches
        .sidecarsets
        .apply(Event::Modified(stored(1, "103")))
        .unwrap();
    reviewed(31);
    assert!(is_believed(), "it was not stored");
    reviewed(1);
    tokio::time::advance(Duration::from_secs(30)).await;
    assert!(is_believed(), "it was not stored");
}

#[tokio::test(start_paused = true)]
async fn a_marker_that_was_reviewed_is_awaited_in_its_namespace_until_the_cache_has_it() {
    let options = kruise_admission::Options {
        serverless_probes: true,
        ..kruise_admission::Options::DEFAULT
    };
    let caches = of_cluster(&[(&kruise_api::podprobemarker::KIND, "v1alpha1")], &options);
    let markers = caches.probe_markers.clone().unwrap();
    fill(&markers, Vec::new());
    let cache = ReviewCache {
        webhook_caches: caches.clone(),
        pods: SharedInformer::new([]),
        nodes: SharedInformer::new([]),
        workloads: None,
        namespace: "ns".into(),
    };
    let is_believed = |namespace: &str| {
        matches!(
            cache.get(&Lookup::all::<PodProbeMarker>(namespace)),
            Cached::Found(_)
        )
    };
    let soon = |kind: &str, name: &str| StoredSoon {
        kind: kind.to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        uid: "u0".to_owned(),
        generation: 1,
    };
    caches.is_reviewed(&soon("PersistentPodState", "idle"));
    assert!(is_believed("shop"), "it is of another kind");
    caches.is_reviewed(&soon("PodProbeMarker", "idle"));
    assert!(!is_believed("shop") && is_believed("office"));
    let marker = json!({"apiVersion": "apps.kruise.io/v1alpha1",
        "metadata": {"name": "idle", "namespace": "shop", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": []}});
    let mut stored = read_all::<Parsed<Arc<PodProbeMarker>>>(&[marker]).remove(0);
    stored.metadata.resource_version = "101".to_owned();
    markers.apply(Event::Added(stored)).unwrap();
    assert!(is_believed("shop"));
    // Another replica has reviewed this one.
    let now = Timestamp::UNIX_EPOCH;
    let object = Stored {
        kind: "PodProbeMarker".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        ..Stored::default()
    };
    let widened = Widened {
        webhook: PODS_OF_SETS.to_owned(),
        expression: "true".to_owned(),
        until: now + KEPT,
        object,
    };
    caches.conditions_are_widened(&[widened], now);
    assert!(!is_believed("shop") && is_believed("office"));
    tokio::time::advance(Duration::from_secs(30)).await;
    assert!(is_believed("shop"), "it was not stored");
}

/// A seeded sequence of numbers, good enough to generate cases.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn of<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.below(among.len())]
    }
}

fn selector(random: &mut Random, keys: &[&str], values: &[&str]) -> Value {
    let mut labels = serde_json::Map::new();
    for _ in 0..random.below(2) {
        labels.insert(random.of(keys).to_owned(), json!(random.of(values)));
    }
    let expressions: Vec<Value> = (0..random.below(3))
        .map(|_| {
            let operator = random.of(&["In", "NotIn", "Exists", "DoesNotExist"]);
            let listed: Vec<&str> = (0..=random.below(2)).map(|_| random.of(values)).collect();
            json!({"key": random.of(keys), "operator": operator, "values": listed})
        })
        .collect();
    json!({"matchLabels": labels, "matchExpressions": expressions})
}

/// True if an API server with this match condition calls the webhook for the pod.
fn calls_webhook(world: &mut World, expression: Option<&str>, pod: &Value) -> bool {
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let mut post =
        |path: &str, body: &Value| world.handle(&kruise_sim::Request::new(Method::Post, path, Some(body)));
    let Some(expression) = expression else {
        return false;
    };
    let hook = json!({"metadata": {"name": "h"}, "webhooks": [{
        "name": "a.b.c", "clientConfig": {"url": "https://127.0.0.1:1"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        "matchConditions": [{"name": "c", "expression": expression}],
    }]});
    let registered = post(path, &hook).response().unwrap();
    assert_eq!(registered.code, 201, "{} {expression}", registered.value());
    let namespace = pod["metadata"]["namespace"].as_str().unwrap();
    let called = match post(&format!("/api/v1/namespaces/{namespace}/pods"), pod) {
        Outcome::Call(_) => true,
        Outcome::Respond(response) => {
            assert_eq!(response.code, 201, "{} {expression}", response.value());
            false
        }
        Outcome::Watch(_) => panic!("a watch"),
    };
    world.handle(&kruise_sim::Request::new(
        Method::Delete,
        &format!("{path}/h"),
        None,
    ));
    called
}

#[test]
fn the_match_condition_selects_exactly_the_pods_that_are_injected() {
    let name = names::NAMESPACE_NAME;
    let (keys, values) = (["a", "b.c/d"], ["x", "y", "", "no label!"]);
    let mut world = World::new(
        &Config::default(),
        &Options::default(),
        jiff::Timestamp::UNIX_EPOCH,
    )
    .unwrap();
    for namespace in ["n1", "n2"] {
        let body = json!({"metadata": {"name": namespace}});
        world.handle(&kruise_sim::Request::new(
            Method::Post,
            "/api/v1/namespaces",
            Some(&body),
        ));
    }
    let mut random = Random(7);
    let (mut injected, mut calls) = (0, 0);
    for round in 0..400 {
        let sets: Vec<Value> = (0..=random.below(3))
            .map(|index| {
                let mut spec = json!({"selector": selector(&mut random, &keys, &values)});
                if random.below(2) == 0 {
                    spec["namespaceSelector"] = selector(&mut random, &[name], &["n1", "n2", "n3"]);
                }
                spec["injectionStrategy"] = json!({"paused": random.below(5) == 0});
                set(&format!("s{index}"), spec)
            })
            .collect();
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("p{round}"), "namespace": random.of(&["n1", "n2"])},
            "spec": {"containers": [{"name": "m", "image": "i"}]}});
        for _ in 0..random.below(3) {
            pod["metadata"]["labels"][random.of(&keys)] = json!(random.of(&["x", "y", ""]));
        }
        let sets = Arc::new(Sets::of(sets));
        let review = json!({"operation": "CREATE", "kind": {"version": "v1", "kind": "Pod"},
            "namespace": pod["metadata"]["namespace"], "object": pod});
        let result = LookupResult::all::<Set>(sets.clone());
        let lookups = Lookups::from_iter([(Lookup::all::<Set>(""), result)]);
        let decisions = decisions(&Request::from_review(review).unwrap(), &lookups).unwrap();
        let expected = decisions.iter().any(|decision| decision.injected);
        let expression = condition(&Reach::of_all(&sets));
        let called = calls_webhook(&mut world, expression.as_deref(), &pod);
        assert_eq!(called, expected, "{sets:?}\n{pod}\n{expression:?}");
        injected += usize::from(expected);
        calls += usize::from(called);
    }
    assert!((50..350).contains(&injected), "{injected} {calls}");
}
