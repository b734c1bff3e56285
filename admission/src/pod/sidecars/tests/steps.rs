//! What a review reports besides the pod: which step did what, and warnings for its author.

use kruise_api::podunavailablebudget::PodUnavailableBudget;
use serde_json::{Value, json};

use super::{after, applied, known, names, pod, request, set};
use crate::lookup::{Lookup, LookupResult, Lookups};
use crate::pod::{review, review_timed};
use crate::{Options, Outcome, Response};

fn steps(pod: &Value, lookups: &Lookups) -> Vec<(&'static str, &'static str)> {
    let mut ended = Vec::new();
    let mut note = |step, result| ended.push((step, result));
    review_timed(&request(pod, "u"), Options::default(), lookups, &mut note);
    ended
}

fn warnings(pod: &Value, sets: &[Value]) -> Vec<String> {
    match review(&request(pod, "u"), Options::default(), &known(sets)) {
        Outcome::Response(Response::Allow { warnings, .. }) => warnings,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_step_says_what_came_of_it() {
    let logs = set("logs", json!({"containers": [after("log")]}));
    assert_eq!(
        steps(&pod(), &known(&[])),
        [
            ("readiness-gate", "unchanged"),
            ("workload-spread", "unchanged"),
            ("sidecars", "unchanged"),
            ("launch", "unchanged"),
            ("budget", "unchanged"),
            ("persistent-pod-state", "unchanged"),
            ("pod-probes", "unchanged"),
        ]
    );
    let mut ordered = pod();
    ordered["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "c", "controller": true}]);
    ordered["metadata"]["annotations"] = json!({"apps.kruise.io/container-launch-priority": "Ordered"});
    assert_eq!(
        steps(&ordered, &known(&[logs])),
        [
            ("readiness-gate", "changed"),
            ("workload-spread", "unchanged"),
            ("sidecars", "changed"),
            ("launch", "changed"),
            ("budget", "unchanged"),
            ("persistent-pod-state", "unchanged"),
            ("pod-probes", "unchanged"),
        ]
    );
    assert_eq!(
        steps(
            &pod(),
            &Lookups::from_iter([(
                Lookup::all::<PodUnavailableBudget>("ns"),
                LookupResult::all::<PodUnavailableBudget>(Vec::new())
            )])
        ),
        [
            ("readiness-gate", "unchanged"),
            ("workload-spread", "unchanged"),
            ("sidecars", "asked")
        ],
        "nothing after it"
    );
    let mut bad = pod();
    let variable = json!({"name": "KRUISE_CONTAINER_PRIORITY", "value": "x"});
    bad["spec"]["containers"] = json!([{"name": "a", "env": [variable]}, {"name": "b"}]);
    assert_eq!(steps(&bad, &known(&[])).last(), Some(&("launch", "denied")));
}

#[test]
fn an_annotation_that_a_set_patches_asks_for_an_order() {
    let ordered = json!([{"annotations": {"apps.kruise.io/container-launch-priority": "Ordered"},
        "patchPolicy": "Retain"}]);
    let sets = [set(
        "logs",
        json!({"containers": [after("log")], "patchPodMetadata": ordered}),
    )];
    let outcome = review(&request(&pod(), "u"), Options::default(), &known(&sets));
    let made = applied(&pod(), outcome);
    let keys: Vec<&Value> = (0..2)
        .map(|place| {
            let env = made["spec"]["containers"][place]["env"].as_array().unwrap();
            let barrier = env
                .iter()
                .find(|one| one["name"] == "KRUISE_CONTAINER_BARRIER")
                .unwrap();
            &barrier["valueFrom"]["configMapKeyRef"]["key"]
        })
        .collect();
    assert_eq!(keys, ["p_0", "p_-1"]);
}

#[test]
fn a_pod_that_is_refused_by_a_step_meets_none_after_it() {
    let policy = json!({"targetContainersMode": "sum", "targetContainersNameRegex": "^none$",
        "resourcesExpr": {"limits": {"cpu": "cpu"}}});
    let mut agent = after("log");
    agent["resourcesPolicy"] = policy;
    let ended = steps(&pod(), &known(&[set("logs", json!({"containers": [agent]}))]));
    assert_eq!(
        ended,
        [
            ("readiness-gate", "unchanged"),
            ("workload-spread", "unchanged"),
            ("sidecars", "denied")
        ]
    );
}

#[test]
fn the_author_is_warned_of_an_own_container_that_a_sidecar_replaces() {
    let sets = [set(
        "logs",
        json!({"containers": [after("main")], "initContainers": [after("setup")]}),
    )];
    let mut own = pod();
    own["spec"]["initContainers"] = json!([{"name": "setup", "image": "own:1"}]);
    let warned = warnings(&own, &sets);
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(
        warned[0].contains("spec.initContainers") && warned[0].contains("\"setup\""),
        "{warned:?}"
    );
    assert!(
        warned[1].contains("spec.containers") && warned[1].contains("\"main\""),
        "{warned:?}"
    );
    // Injected once, it is a sidecar that is replaced by a sidecar.
    let outcome = review(&request(&own, "u"), Options::default(), &known(&sets));
    let injected = applied(&own, outcome);
    assert_eq!(names(&injected["spec"]["containers"]), ["main"]);
    assert!(warnings(&injected, &sets).is_empty());
    assert!(warnings(&pod(), &[set("logs", json!({"containers": [after("log")]}))]).is_empty());
}
