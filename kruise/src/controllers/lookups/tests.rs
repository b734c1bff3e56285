use kruise_admission::{
    Lookups as Results, Request,
    lookup::{Lookup, LookupResult},
    pod::sidecars::decisions,
};
use kruise_sim::{Config, Method, Options, Outcome, World};
use kube_cache::{Event, Version};
use serde_json::json;

use super::*;

/// What a first list brings.
fn fill<T: kube_cache::Cached>(informer: &SharedInformer<T>, objects: Vec<T>) {
    for event in [
        Event::ListStarted,
        Event::Page(objects),
        Event::ListDone {
            version: Version::new(100),
        },
    ] {
        informer.apply(event).unwrap();
    }
}

fn read_all<T: serde::de::DeserializeOwned>(objects: &[Value]) -> Vec<T> {
    let with_version = |(index, object): (usize, &Value)| {
        let mut object = object.clone();
        object["metadata"]["uid"] = json!(format!("u{index}"));
        object["metadata"]["resourceVersion"] = json!((index + 1).to_string());
        serde_json::from_value(object).unwrap()
    };
    objects.iter().enumerate().map(with_version).collect()
}

/// Caches whose first lists are in.
pub(crate) fn filled(sets: &[Value], namespaces: &[Value], revisions: &[Value]) -> Lookups {
    let lookups = empty(Some("v1beta1"));
    fill_with(&lookups, sets, namespaces, revisions);
    lookups
}

/// Caches whose first lists are not in, on a cluster that serves SidecarSets in this version.
pub(crate) fn empty(version: Option<&'static str>) -> Lookups {
    let served = version.map(|version| (ResourceId::SIDECARSETS, version));
    Lookups::new(&mut Caches::default(), &Arc::new(served.into_iter().collect()))
}

/// Brings the first lists in.
pub(crate) fn fill_with(caches: &Lookups, sets: &[Value], namespaces: &[Value], revisions: &[Value]) {
    fill(&caches.namespaces, read_all(namespaces));
    fill(&caches.revisions, read_all(revisions));
    fill(&caches.sets, read_all(sets));
}

fn set(name: &str, spec: Value) -> Value {
    let mut set = json!({"metadata": {"name": name}, "spec": spec});
    set["spec"]["containers"] = json!([{"name": format!("of-{name}"), "image": "i"}]);
    set
}

#[test]
fn before_the_first_list_there_is_no_result_and_an_unserved_kind_has_no_objects() {
    assert!(empty(Some("v1alpha1")).all().is_none());
    assert_eq!(empty(None).all().unwrap().iter().count(), 0);
}

#[test]
fn a_changed_sidecarset_is_in_the_next_result() {
    let caches = filled(&[set("a", json!({}))], &[], &[]);
    let names = || {
        let sets = caches.all().unwrap();
        sets.iter().map(|set| set.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["a"]);
    let mut more = read_all::<CachedSidecarSet>(&[json!({}), set("b", json!({}))]);
    more[1].metadata.resource_version = "101".to_owned();
    caches.sets.apply(Event::Added(more.remove(1))).unwrap();
    caches.table.change();
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
    let ask = |wanted: Revision| {
        caches.revision("ns", &wanted).map(|one| {
            assert_eq!(one["metadata"].get("managedFields"), None);
            one["metadata"]["name"].clone()
        })
    };
    let versioned = |set: &str, version: &str| Revision::Versioned {
        set: set.to_owned(),
        version: version.to_owned(),
    };
    assert_eq!(ask(Revision::Named("b-3".into())), Some(json!("b-3")));
    assert_eq!(ask(Revision::Named("c".into())), None);
    assert_eq!(ask(versioned("a", "v1")), Some(json!("a-2")));
    assert_eq!(ask(versioned("a", "v2")), None);
}

#[tokio::test]
async fn the_match_condition_is_published_only_when_it_changes() {
    let selector = json!({"selector": {"matchLabels": {"app": "web"}}});
    let caches = filled(&[set("a", selector)], &[], &[]);
    let mut conditions = caches.condition();
    let (stop, stopped) = watch::channel(false);
    let kept = tokio::spawn(caches.clone().keep_condition(stopped));
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
    let elsewhere = json!({"selector": {"matchLabels": {"app": "web"}}, "customVersion": "2"});
    caches
        .sets
        .apply(Event::Modified(version("101", elsewhere)))
        .unwrap();
    caches.table.change();
    let paused = json!({"selector": {"matchLabels": {"app": "web"}}, "injectionStrategy": {"paused": true}});
    caches
        .sets
        .apply(Event::Modified(version("102", paused)))
        .unwrap();
    caches.table.change();
    conditions.changed().await.unwrap();
    assert_eq!(*conditions.borrow_and_update(), DesiredCondition::Absent);
    stop.send_replace(true);
    kept.await.unwrap();
}

/// A seeded sequence of numbers, good enough to draw cases from.
struct Dice(u64);

impl Dice {
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

fn selector(dice: &mut Dice, keys: &[&str], values: &[&str]) -> Value {
    let mut labels = serde_json::Map::new();
    for _ in 0..dice.below(2) {
        labels.insert(dice.of(keys).to_owned(), json!(dice.of(values)));
    }
    let expressions: Vec<Value> = (0..dice.below(3))
        .map(|_| {
            let operator = dice.of(&["In", "NotIn", "Exists", "DoesNotExist"]);
            let listed: Vec<&str> = (0..=dice.below(2)).map(|_| dice.of(values)).collect();
            json!({"key": dice.of(keys), "operator": operator, "values": listed})
        })
        .collect();
    json!({"matchLabels": labels, "matchExpressions": expressions})
}

/// Does a server with this condition ask about the pod?
fn is_asked(world: &mut World, expression: Option<&str>, pod: &Value) -> bool {
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
    let asked = match post(&format!("/api/v1/namespaces/{namespace}/pods"), pod) {
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
    asked
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
    let mut dice = Dice(7);
    let (mut injected, mut shown) = (0, 0);
    for round in 0..400 {
        let sets: Vec<Value> = (0..=dice.below(3))
            .map(|index| {
                let mut spec = json!({"selector": selector(&mut dice, &keys, &values)});
                if dice.below(2) == 0 {
                    spec["namespaceSelector"] = selector(&mut dice, &[name], &["n1", "n2", "n3"]);
                }
                spec["injectionStrategy"] = json!({"paused": dice.below(5) == 0});
                set(&format!("s{index}"), spec)
            })
            .collect();
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("p{round}"), "namespace": dice.of(&["n1", "n2"])},
            "spec": {"containers": [{"name": "m", "image": "i"}]}});
        for _ in 0..dice.below(3) {
            pod["metadata"]["labels"][dice.of(&keys)] = json!(dice.of(&["x", "y", ""]));
        }
        let sets = Arc::new(Sets::of(sets));
        let review = json!({"operation": "CREATE", "kind": {"version": "v1", "kind": "Pod"},
            "namespace": pod["metadata"]["namespace"], "object": pod});
        let result = LookupResult::SidecarSets(sets.clone());
        let lookups = Results::from_iter([(Lookup::SidecarSets, result)]);
        let decisions = decisions(&Request::from_review(review).unwrap(), &lookups).unwrap();
        let expected = decisions.iter().any(|decision| decision.injected);
        let expression = condition(&sets);
        let asked = is_asked(&mut world, expression.as_deref(), &pod);
        assert_eq!(asked, expected, "{sets:?}\n{pod}\n{expression:?}");
        injected += usize::from(expected);
        shown += usize::from(asked);
    }
    assert!((50..350).contains(&injected), "{injected} {shown}");
}
