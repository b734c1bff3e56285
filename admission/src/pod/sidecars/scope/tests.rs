use serde_json::{Value, json};

use super::*;

fn of(specs: &[Value]) -> Option<String> {
    let sets = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| json!({"metadata": {"name": format!("s{index}")}, "spec": spec}));
    condition(&Reach::of_all(&Sets::of(sets)))
}

fn whole(inner: &str) -> String {
    let labels = "[has(object.metadata.labels) ? object.metadata.labels : {}]";
    format!("{labels}.exists(l, {inner})")
}

#[test]
fn sets_that_inject_are_alternatives_and_the_same_one_is_said_once() {
    let web = json!({"selector": {"matchLabels": {"app": "web"}}});
    let paused = json!({"selector": {"matchLabels": {"app": "db"}}, "injectionStrategy": {"paused": true}});
    let logs = json!({"selector": {"matchExpressions": [
        {"key": "logs", "operator": "In", "values": ["on", "all", "on"]},
        {"key": "quiet", "operator": "DoesNotExist"},
    ]}});
    assert_eq!(
        of(&[web.clone(), paused.clone(), logs, web]),
        Some(whole(
            "!('quiet' in l) && 'logs' in l && l['logs'] in ['all', 'on'] || 'app' in l && l['app'] == 'web'"
        ))
    );
    assert_eq!(of(&[paused, json!({"selector": {}}), json!({})]), None);
    assert_eq!(of(&[]), None);
}

#[test]
fn of_a_namespace_only_the_name_is_said() {
    let spec =
        |namespaces: Value| json!({"selector": {"matchLabels": {"a": "b"}}, "namespaceSelector": namespaces});
    let name = "kubernetes.io/metadata.name";
    assert_eq!(
        of(&[spec(json!({"matchLabels": {"env": "prod", name: "shop"}}))]),
        Some(whole("'a' in l && l['a'] == 'b' && request.namespace == 'shop'"))
    );
    let except = json!({"matchExpressions": [{"key": name, "operator": "NotIn", "values": ["x", "y"]}]});
    assert_eq!(
        of(&[spec(except)]),
        Some(whole(
            "!(request.namespace in ['x', 'y']) && 'a' in l && l['a'] == 'b'"
        ))
    );
    let nameless = json!({"matchExpressions": [{"key": name, "operator": "DoesNotExist"}]});
    assert_eq!(of(&[spec(nameless)]), None);
    let pinned = json!({"selector": {"matchLabels": {"a": "b"}}, "namespace": "shop"});
    assert_eq!(
        of(&[pinned]),
        Some(whole("'a' in l && l['a'] == 'b' && request.namespace == 'shop'"))
    );
}

#[test]
fn what_can_be_no_label_is_decided_and_not_said() {
    let evil = "x'] == '' || true || l['";
    let with = |operator: &str| {
        json!({"selector": {"matchExpressions": [
            {"key": "a", "operator": "Exists"},
            {"key": evil, "operator": operator, "values": ["b"]},
        ]}})
    };
    for (operator, expected) in [
        ("In", None),
        ("Exists", None),
        ("NotIn", Some(whole("'a' in l"))),
        ("DoesNotExist", Some(whole("'a' in l"))),
    ] {
        assert_eq!(of(&[with(operator)]), expected, "{operator}");
    }
    assert_eq!(of(&[json!({"selector": {"matchLabels": {"a": evil}}})]), None);
    let unequal = json!({"selector": {"matchExpressions": [
        {"key": "a", "operator": "NotIn", "values": [evil]},
    ]}});
    assert_eq!(of(&[unequal]), Some("true".to_owned()));
    let strange =
        json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}});
    assert_eq!(of(&[strange]), None);
}

fn of_budget(spec: &Value) -> Option<Reach> {
    let budget = json!({"apiVersion": "policy.kruise.io/v1beta1",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
    Reach::of_budget(&PodUnavailableBudget::from_value(budget).unwrap())
}

#[test]
fn a_budget_needs_pods_of_its_namespace_with_its_labels_or_an_owner() {
    let by_target = json!({"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
    let by_labels = json!({"selector": {"matchLabels": {"app": "web"}}});
    for (spec, expected) in [
        (
            &by_target,
            "request.namespace == 'shop' && has(object.metadata.ownerReferences)",
        ),
        (
            &by_labels,
            "'app' in l && l['app'] == 'web' && request.namespace == 'shop'",
        ),
    ] {
        let reach = of_budget(spec).unwrap();
        let found = condition(&[reach.clone()].into()).unwrap();
        assert_eq!(found, whole(expected));
        assert!(reach.is_within(&found) && !reach.is_within(&whole("request.namespace == 'office'")));
    }
    assert_eq!(of_budget(&json!({})), None);
    assert_eq!(of_budget(&json!({"selector": {}})), None);
}

#[test]
fn a_spread_needs_pods_of_its_namespace_that_its_target_may_own() {
    let of = |api: &str, kind: &str| {
        let target = json!({"apiVersion": api, "kind": kind, "name": "web"});
        let spread = json!({"apiVersion": "apps.kruise.io/v1beta1",
            "metadata": {"name": "s", "namespace": "shop"}, "spec": {"targetRef": target, "subsets": []}});
        Reach::of_spread(&WorkloadSpread::from_value(spread).unwrap()).unwrap()
    };
    let owned = "request.namespace == 'shop' && has(object.metadata.ownerReferences)";
    for (api, kind, test) in [
        ("apps/v1", "Deployment", Some("o.kind == 'ReplicaSet'")),
        (
            "apps/v1",
            "ReplicaSet",
            Some("o.kind == 'ReplicaSet' && o.name == 'web'"),
        ),
        (
            "apps.kruise.io/v1beta1",
            "CloneSet",
            Some("o.kind == 'CloneSet' && o.name == 'web'"),
        ),
        ("batch/v1", "Job", Some("o.kind == 'Job' && o.name == 'web'")),
        ("example.com/v1", "Game", None),
    ] {
        let reach = of(api, kind);
        let found = condition(&[reach.clone()].into()).unwrap();
        let expected = test.map_or(owned.to_owned(), |test| {
            format!("{owned} && object.metadata.ownerReferences.exists(o, {test})")
        });
        assert_eq!(found, whole(&expected), "{kind}");
        assert!(reach.is_within(&found) && !reach.is_within(&whole("request.namespace == 'office'")));
        assert!(reach.is_within(&whole(owned)));
    }
    let nobodys = json!({"apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "s"}, "spec": {}});
    assert_eq!(
        Reach::of_spread(&WorkloadSpread::from_value(nobodys).unwrap()),
        None
    );
}

#[test]
fn a_pod_state_needs_pods_of_its_namespace_that_its_target_owns() {
    let of = |namespace: &str, name: &str| {
        let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name});
        let state = json!({"apiVersion": "apps.kruise.io/v1beta1",
            "metadata": {"name": "s", "namespace": namespace}, "spec": {"targetRef": target}});
        Reach::of_pod_state(&PersistentPodState::from_value(state).unwrap())
    };
    let reach = of("shop", "broker").unwrap();
    let found = condition(&[reach.clone()].into()).unwrap();
    let expected = "request.namespace == 'shop' && has(object.metadata.ownerReferences) \
        && object.metadata.ownerReferences.exists(o, o.kind == 'StatefulSet' && o.name == 'broker')";
    assert_eq!(found, whole(expected));
    assert!(reach.is_within(&found) && reach.is_within(&expressions(&[reach.clone()].into())[1]));
    let others = [of("shop", "cache").unwrap(), of("office", "broker").unwrap()];
    assert!(!reach.is_within(&condition(&others.clone().into()).unwrap()));
    let both = condition(&[reach.clone(), others[0].clone()].into()).unwrap();
    assert!(reach.is_within(&both) && others[0].is_within(&both) && !others[1].is_within(&both));
    assert_eq!(of("shop", "x' || true || 'y"), None);
}

fn reach(spec: Value) -> Reach {
    Reach::of(&Set::new(std::sync::Arc::new(json!({"spec": spec})))).unwrap()
}

#[test]
fn a_condition_covers_what_one_of_its_alternatives_asks_less_of() {
    let web = json!({"matchLabels": {"app": "web"}});
    let web_in = |namespace: &str| {
        reach(json!({"selector": web, "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: namespace}}}))
    };
    let everywhere = reach(json!({"selector": web}));
    let quiet = reach(json!({"selector": {"matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "quiet", "operator": "NotIn", "values": ["yes"]}]}}));
    let database = reach(json!({"selector": {"matchLabels": {"app": "db"}}}));
    let of = |reaches: &[&Reach]| condition(&reaches.iter().map(|one| (*one).clone()).collect()).unwrap();
    let both = of(&[&everywhere, &database]);
    for reach in [&everywhere, &database, &quiet, &web_in("shop")] {
        assert!(reach.is_within(&both), "{reach:?}");
        assert!(reach.is_within("true"));
        assert!(!reach.is_within("false") && !reach.is_within(""));
        assert!(!reach.is_within(&format!("!({both})")));
        assert!(!reach.is_within(&format!("{both} && false")));
        assert!(!reach.is_within(&format!("(false ? true : false) || false ? false : {both}")));
        assert!(
            reach.is_within(&expressions(&[reach.clone()].into())[1]),
            "{reach:?}"
        );
    }
    assert!(!everywhere.is_within(&of(&[&web_in("shop"), &quiet, &database])));
    assert!(!web_in("shop").is_within(&of(&[&web_in("office")])));
    assert!(
        !quiet.is_within(&of(&[&reach(json!({"selector": {"matchExpressions": [
        {"key": "quiet", "operator": "NotIn", "values": ["no"]}]}}))]))
    );
    let widened = format!(
        "({}) || ({}) || ({})",
        of(&[&database]),
        of(&[&web_in("shop")]),
        of(&[&quiet])
    );
    assert!(quiet.is_within(&widened) && web_in("shop").is_within(&widened));
    assert!(!everywhere.is_within(&widened));
    assert!(everywhere.is_within(&format!("(({widened}) || ({both}))")));
}

fn budget(namespace: &str, selector: &Value) -> Reach {
    let budget = json!({"apiVersion": "policy.kruise.io/v1beta1", "metadata": {"name": "b", "namespace": namespace},
        "spec": {"selector": selector}});
    Reach::of_budget(&PodUnavailableBudget::from_value(budget).unwrap()).unwrap()
}

fn not_in(namespace: &str, count: usize) -> Reach {
    let values: Vec<String> = (0..count)
        .map(|n| format!("a-value-that-takes-room-{n:050}"))
        .collect();
    budget(
        namespace,
        &json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": values}]}),
    )
}

#[test]
fn a_namespace_that_takes_all_the_room_is_widened_and_no_other() {
    let shop = budget("shop", &json!({"matchLabels": {"app": "web"}}));
    let all: BTreeSet<Reach> = [shop.clone(), not_in("hostile", 700)].into();
    let found = condition(&all).unwrap();
    let expected =
        "'app' in l && l['app'] == 'web' && request.namespace == 'shop' || request.namespace == 'hostile'";
    assert_eq!(found, whole(expected));
    assert!(all.iter().all(|reach| reach.is_within(&found)));
    // Many short ones take as much room as a long one.
    let short = |n: usize| budget("hostile", &json!({"matchLabels": {format!("key-{n}"): "v"}}));
    let mut all: BTreeSet<Reach> = (0..2_000).map(short).collect();
    all.insert(shop);
    assert_eq!(condition(&all).unwrap(), found);
    for wider in expressions(&[not_in("hostile", 700)].into()) {
        assert!(wider.contains("request.namespace == 'hostile'"), "{wider}");
    }
}

#[test]
fn many_namespaces_are_named_in_one_list() {
    let all: BTreeSet<Reach> = (0..2_000).map(|n| not_in(&format!("n-{n}"), 2)).collect();
    let found = condition(&all).unwrap();
    assert!(found.len() <= LENGTH && found.contains("request.namespace in ['n-"));
    assert!(all.iter().all(|reach| reach.is_within(&found)));
    assert!(!not_in("n-2000", 2).is_within(&found));
}

#[test]
fn what_gets_too_long_is_said_wider() {
    let many = |key: &str| {
        let specs: Vec<Value> = (0..3000)
            .map(|n| json!({"selector": {"matchLabels": {key: format!("value-{n}")}}}))
            .collect();
        of(&specs)
    };
    assert_eq!(many("app"), Some(whole("'app' in l")));
    let specs: Vec<Value> = (0..5000)
        .map(|n| json!({"selector": {"matchLabels": {format!("key-{n}"): "v"}}}))
        .collect();
    assert_eq!(of(&specs), Some("true".to_owned()));
}
