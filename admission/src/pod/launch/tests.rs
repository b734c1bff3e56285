use crate::pod::sidecars::Set;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_api::workloadspread::WorkloadSpread;
use serde_json::{Value, json};

use crate::lookup::{Lookup, LookupResult, Lookups};
use crate::pod::{review, sidecars::Sets};
use crate::{Options, Outcome, Request, Response};

fn asked(pod: &Value, uid: &str) -> Response {
    let review =
        json!({"uid": uid, "kind": {"version": "v1", "kind": "Pod"}, "operation": "CREATE", "object": pod});
    let request = Request::from_review(review).unwrap();
    match review_of(&request) {
        Outcome::Response(response) => response,
        other => panic!("{other:?}"),
    }
}

fn review_of(request: &Request) -> Outcome {
    review(request, Options::default(), &among(Vec::new()))
}

/// These SidecarSets and nothing else.
fn among(sets: Vec<Value>) -> Lookups {
    let sets = LookupResult::all::<Set>(Sets::of(sets).into());
    let none = || LookupResult::all::<PodUnavailableBudget>(Vec::new());
    Lookups::from_iter([
        (Lookup::all::<Set>(""), sets),
        (Lookup::all::<PodUnavailableBudget>(String::new()), none()),
        (Lookup::all::<PodUnavailableBudget>("ns"), none()),
        (
            Lookup::all::<WorkloadSpread>("ns"),
            LookupResult::all::<WorkloadSpread>(Vec::new()),
        ),
    ])
}

/// The pod as it is stored.
fn admitted(pod: &Value, uid: &str) -> Value {
    asked(pod, uid).applied_to(pod)
}

fn pod(containers: Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"containers": containers}})
}

fn ordered(containers: Value) -> Value {
    let mut pod = pod(containers);
    pod["metadata"]["annotations"] = json!({"apps.kruise.io/container-launch-priority": "Ordered"});
    pod
}

fn with(name: &str, number: &str) -> Value {
    json!({"name": name, "env": [{"name": "KRUISE_CONTAINER_PRIORITY", "value": number}]})
}

/// The keys that containers wait for, and whose.
fn keys(pod: &Value) -> Vec<String> {
    let containers = pod["spec"]["containers"].as_array().unwrap().iter();
    let key = |container: &Value| {
        let env = container["env"].as_array().cloned().unwrap_or_default();
        let mut barriers = env
            .iter()
            .filter(|variable| variable["name"] == "KRUISE_CONTAINER_BARRIER");
        let barrier = barriers
            .next()
            .map(|variable| &variable["valueFrom"]["configMapKeyRef"]);
        assert!(barriers.next().is_none(), "{container}");
        barrier.map_or("none".into(), |it| {
            format!("{}/{}", it["name"].as_str().unwrap(), it["key"].as_str().unwrap())
        })
    };
    containers.map(key).collect()
}

#[test]
fn the_published_example_gets_its_barriers_byte_for_byte() {
    let example = pod(json!([
        {"name": "main", "image": "registry.example/web:1"},
        {"name": "proxy", "image": "registry.example/proxy:1",
         "env": [{"name": "KRUISE_CONTAINER_PRIORITY", "value": "10"}]},
    ]));
    let Response::Allow {
        patch: Some(patch), ..
    } = asked(&example, "u")
    else {
        panic!("no patch");
    };
    let barrier = |key: &str| {
        format!(
            r#"{{"name":"KRUISE_CONTAINER_BARRIER","valueFrom":{{"configMapKeyRef":{{"name":"web-barrier","key":"{key}"}}}}}}"#
        )
    };
    let stored = admitted(&example, "u");
    let text = |pointer: &str| {
        let variable = stored.pointer(pointer).unwrap();
        let from = &variable["valueFrom"]["configMapKeyRef"];
        // In the order in which a server stores its members.
        format!(
            r#"{{"name":{},"valueFrom":{{"configMapKeyRef":{{"name":{},"key":{}}}}}}}"#,
            variable["name"], from["name"], from["key"]
        )
    };
    assert_eq!(text("/spec/containers/0/env/0"), barrier("p_0"));
    assert_eq!(text("/spec/containers/1/env/1"), barrier("p_10"));
    for (variable, members) in [("/spec/containers/0/env/0", 2), ("/spec/containers/1/env/1", 2)] {
        assert_eq!(
            stored.pointer(variable).unwrap().as_object().unwrap().len(),
            members
        );
    }
    assert!(!patch.contains("optional"), "the key must be there: {patch}");
}

#[test]
fn in_order_means_as_they_are_listed_whatever_their_numbers() {
    let pod = ordered(json!([with("a", "1"), with("b", "5"), {"name": "c"}]));
    assert_eq!(
        keys(&admitted(&pod, "u")),
        ["web-barrier/p_0", "web-barrier/p_-1", "web-barrier/p_-2"]
    );
    let none = ordered(json!([with("a", "no number"), {"name": "b"}]));
    assert_eq!(
        keys(&admitted(&none, "u")),
        ["web-barrier/p_0", "web-barrier/p_-1"]
    );
}

#[test]
fn where_nothing_is_to_be_ordered_nothing_changes() {
    let mut other = ordered(json!([{"name": "a"}, {"name": "b"}]));
    other["metadata"]["annotations"]["apps.kruise.io/container-launch-priority"] = json!("ordered");
    for pod in [
        other,
        ordered(json!([{"name": "alone"}])),
        ordered(json!([])),
        pod(json!([with("alone", "x")])),
        pod(json!([{"name": "a"}, {"name": "b"}])),
        pod(json!([with("a", "7"), with("b", "7")])),
        pod(json!([with("a", "0"), {"name": "b"}])),
    ] {
        assert_eq!(asked(&pod, "u"), Response::ALLOW, "{pod}");
    }
}

#[test]
fn a_number_that_cannot_be_read_is_refused_and_the_last_one_counts() {
    for value in ["x", "", "1.5", " 1", "9223372036854775808", "1_0"] {
        let pod = pod(json!([with("a", value), {"name": "b"}]));
        assert!(
            matches!(asked(&pod, "u"), Response::Deny { code: 500, .. }),
            "{value:?}"
        );
    }
    let from = json!({"name": "a", "env": [{"name": "KRUISE_CONTAINER_PRIORITY",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]});
    assert!(matches!(
        asked(&pod(json!([from, {"name": "b"}])), "u"),
        Response::Deny { .. }
    ));
    let mut twice = with("a", "x");
    twice["env"]
        .as_array_mut()
        .unwrap()
        .push(with("a", "+4")["env"][0].clone());
    let pod = pod(json!([twice, with("b", "-2147483649")]));
    assert_eq!(
        keys(&admitted(&pod, "u")),
        ["web-barrier/p_4", "web-barrier/p_-2147483649"]
    );
}

#[test]
fn a_pod_without_a_name_gets_one_that_another_attempt_draws_anew() {
    let mut pod = ordered(json!([{"name": "a"}, {"name": "b"}]));
    pod["metadata"]["name"] = Value::Null;
    pod["metadata"]["generateName"] = json!(format!("{}-", "x".repeat(70)));
    let (one, two) = (admitted(&pod, "first"), admitted(&pod, "second"));
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
    assert_ne!(name(&one), name(&two));
    assert_eq!(admitted(&pod, "first"), one);
    let (prefix, letters) = (&name(&one)[..58], name(&one)[58..].to_owned());
    assert_eq!(prefix, "x".repeat(58));
    assert_eq!(letters.len(), 5);
    assert!(
        letters
            .chars()
            .all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)),
        "{letters}"
    );
    assert_eq!(keys(&one)[0], format!("{}-barrier/p_0", name(&one)));
    // What is not ordered is named by the server.
    pod["metadata"]["annotations"] = json!({});
    assert_eq!(asked(&pod, "u"), Response::ALLOW);
}

#[test]
fn names_of_requests_that_differ_little_differ_everywhere() {
    let drawn: std::collections::BTreeSet<String> = (0..2000)
        .map(|n| super::letters(&format!("0d5f7a1e-0000-4000-8000-{n:012}")))
        .collect();
    assert!(drawn.len() >= 1999, "{}", drawn.len());
}

#[test]
fn a_name_without_room_for_the_barriers_is_refused() {
    let mut pod = ordered(json!([{"name": "a"}, {"name": "b"}]));
    pod["metadata"]["name"] = json!("x".repeat(245));
    assert_eq!(keys(&admitted(&pod, "u")).len(), 2);
    pod["metadata"]["name"] = json!("x".repeat(246));
    assert!(matches!(asked(&pod, "u"), Response::Deny { .. }));
}

#[test]
fn barriers_of_others_are_replaced_and_the_own_one_stays_where_it_is() {
    let foreign = json!({"name": "KRUISE_CONTAINER_BARRIER", "value": "x"});
    let of_another_pod = json!({"name": "KRUISE_CONTAINER_BARRIER",
        "valueFrom": {"configMapKeyRef": {"name": "web-1-barrier", "key": "p_0"}}});
    let pod = ordered(json!([
        {"name": "a", "env": [foreign, of_another_pod, {"name": "OWN", "value": "1", "newer": true}]},
        {"name": "b", "env": null},
    ]));
    let once = admitted(&pod, "u");
    assert_eq!(keys(&once), ["web-barrier/p_0", "web-barrier/p_-1"]);
    assert_eq!(
        once["spec"]["containers"][0]["env"][0],
        json!({"name": "OWN", "value": "1", "newer": true})
    );
    assert_eq!(asked(&once, "other"), Response::ALLOW);
    let mut behind = once.clone();
    behind["spec"]["containers"][0]["env"]
        .as_array_mut()
        .unwrap()
        .reverse();
    assert_eq!(asked(&behind, "u"), Response::ALLOW);
}

#[test]
fn an_injected_sidecar_takes_part_by_its_number() {
    let proxy = json!({"name": "proxy", "image": "proxy:1", "podInjectPolicy": "AfterAppContainer",
        "env": [{"name": "KRUISE_CONTAINER_PRIORITY", "value": "100"}]});
    let set = json!({"metadata": {"name": "mesh"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [proxy]}});
    let lookups = among(vec![set]);
    let mut once = pod(json!([{"name": "main"}]));
    once["metadata"]["labels"] = json!({"app": "web"});
    for _ in 0..2 {
        let review_of = json!({"uid": "u", "kind": {"version": "v1", "kind": "Pod"}, "operation": "CREATE",
            "namespace": "ns", "object": once});
        let request = Request::from_review(review_of).unwrap();
        let Outcome::Response(response) = review(&request, Options::default(), &lookups) else {
            panic!("all is known");
        };
        once = response.applied_to(&once);
        assert_eq!(keys(&once), ["web-barrier/p_0", "web-barrier/p_100"]);
    }
}
