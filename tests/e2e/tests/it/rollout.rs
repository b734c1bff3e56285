//! Rollouts that are turned back, stopped, and limited.

use std::collections::BTreeMap;
use std::time::Duration;

use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, container, scenario, text, web};

/// Name and number of every revision, by number.
fn revisions(scenario: &Scenario) -> Vec<(String, i64)> {
    let revisions = scenario.kubectl.list("controllerrevisions", "").unwrap();
    let mut revisions: Vec<_> = revisions
        .iter()
        .map(|revision| {
            (
                text(revision, "/metadata/name"),
                revision["revision"].as_i64().unwrap(),
            )
        })
        .collect();
    revisions.sort_by_key(|(_, number)| *number);
    revisions
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn going_back_takes_the_old_revision_with_a_new_number_and_leaves_its_pods_alone() {
    let scenario = scenario("rollback");
    // API servers spell these characters in their own way when they patch a revision, whose data must not change.
    let value = "a && b <c>";
    let mut set = web(4);
    set["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = json!(value);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 4}));
    let one = revisions(&scenario);
    let first = one[0].0.clone();
    assert_eq!(one, [(first.clone(), 1)]);
    let mut half = container("nginx:2", value);
    half["spec"]["updateStrategy"] = json!({"partition": 2});
    scenario.patch(&half);
    scenario.until_status(&json!({"updatedReadyReplicas": 2, "readyReplicas": 4}));
    let two = revisions(&scenario);
    let second = two[1].0.clone();
    assert_eq!(two, [(first.clone(), 1), (second.clone(), 2)]);
    let versions = || -> BTreeMap<String, (String, String)> {
        let pods = scenario.pods().into_iter();
        pods.map(|pod| {
            let of = |path: &str| text(&pod, path);
            let revision = of("/metadata/labels/controller-revision-hash");
            (of("/metadata/uid"), (revision, of("/metadata/resourceVersion")))
        })
        .collect()
    };
    let before = versions();

    let mut back = container("nginx:1", value);
    back["spec"]["updateStrategy"] = json!({"partition": 0});
    scenario.patch(&back);
    scenario
        .until_status(&json!({"updatedReadyReplicas": 4, "updateRevision": first, "currentRevision": first}));
    assert_eq!(revisions(&scenario), [(second, 2), (first.clone(), 3)]);
    let after = versions();
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        after.keys().collect::<Vec<_>>(),
        "in place"
    );
    let untouched = before.iter().filter(|(_, (revision, _))| *revision == first);
    assert_eq!(untouched.clone().count(), 2);
    for (uid, version) in untouched {
        assert_eq!(after[uid], *version);
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_paused_rollout_changes_no_pod_until_it_is_resumed() {
    let scenario = scenario("paused");
    scenario.kubectl.apply(&web(3)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 3}));
    let mut patch = container("nginx:2", "b");
    patch["spec"]["updateStrategy"] = json!({"paused": true});
    scenario.patch(&patch);
    scenario.until_status(&json!({"updatedReplicas": 0}));
    wait::observe_for(Duration::from_secs(3));
    let images = || -> Vec<String> {
        let pods = scenario.pods().into_iter();
        pods.map(|pod| text(&pod, "/spec/containers/0/image")).collect()
    };
    assert_eq!(images(), ["nginx:1"; 3]);
    scenario.patch(&json!({"spec": {"updateStrategy": {"paused": false}}}));
    scenario.until_status(&json!({"updatedReadyReplicas": 3}));
    assert_eq!(images(), ["nginx:2"; 3]);
}

/// The most pods that were out of service at any moment, of `replicas` that all were in service before.
fn most_unavailable(events: &[Value], replicas: usize) -> usize {
    let mut ready: BTreeMap<String, bool> = BTreeMap::new();
    let mut most = 0;
    let mut complete = false;
    for event in events {
        let pod = &event["object"];
        let conditions = pod["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let is_ready = conditions
            .iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let leaves = event["type"] == "DELETED" || pod["metadata"]["deletionTimestamp"].is_string();
        ready.insert(text(pod, "/metadata/uid"), is_ready && !leaves);
        let available = ready.values().filter(|ready| **ready).count();
        complete |= available == replicas;
        if complete {
            most = most.max(replicas.saturating_sub(available));
        }
    }
    assert!(complete, "never were all pods in service");
    most
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn never_are_more_pods_out_of_service_than_max_unavailable() {
    let scenario = scenario("max-unavailable");
    let mut set = web(8);
    set["spec"]["updateStrategy"]["maxUnavailable"] = json!(2);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 8}));
    for (what, image, variable) in [("in place", "nginx:2", "b"), ("recreated", "nginx:2", "c")] {
        let watch = Watch::start(&scenario.kubectl, "pods", "app=web").unwrap();
        watch.until_shown(8, LIMIT).unwrap();
        scenario.patch(&container(image, variable));
        scenario.until_status(&json!({"updatedReadyReplicas": 8, "replicas": 8}));
        let most = most_unavailable(&watch.stop().unwrap(), 8);
        // None would mean that the watch saw nothing.
        assert!((1..=2).contains(&most), "{what}: {most}");
    }
}

/// Of two pods with label `tier=gold` and two later ones with `tier=bronze`, how many change where this strategy
/// chooses two of all four at once.
fn half_changed_by(scenario: &Scenario, strategy: &Value) -> [usize; 2] {
    let tier = |tier: &str, change: Value| {
        let mut patch = change;
        patch["spec"]["template"]["metadata"] = json!({"labels": {"tier": tier}});
        patch
    };
    let mut set = web(2);
    set["spec"]["template"]["metadata"]["labels"]["tier"] = json!("gold");
    set["spec"]["updateStrategy"]["maxUnavailable"] = json!(2);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 2, "availableReplicas": 2}));
    let gold = scenario.uids();
    let further = json!({"spec": {"replicas": 4, "updateStrategy": {"partition": 2}}});
    scenario.patch(&tier("bronze", further));
    scenario.until_status(&json!({"availableReplicas": 4, "updatedAvailableReplicas": 2}));
    assert!(gold.iter().all(|uid| scenario.uids().contains(uid)));
    let mut change = container("nginx:2", "b");
    change["spec"]["updateStrategy"] = strategy.clone();
    change["spec"]["updateStrategy"]["partition"] = json!(2);
    scenario.patch(&change);
    scenario.until_status(&json!({"availableReplicas": 4, "updatedAvailableReplicas": 2}));
    let pods = scenario.pods().into_iter();
    let changed: Vec<Value> = pods
        .filter(|pod| text(pod, "/spec/containers/0/image") == "nginx:2")
        .collect();
    let is_gold = |pod: &&Value| gold.contains(&text(pod, "/metadata/uid"));
    let of_gold = changed.iter().filter(is_gold).count();
    [of_gold, changed.len() - of_gold]
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_of_more_weight_change_first() {
    let scenario = scenario("weights");
    let of =
        |weight: u32, tier: &str| json!({"weight": weight, "matchSelector": {"matchLabels": {"tier": tier}}});
    let strategy = json!({"priorityStrategy": {"weightPriority": [of(10, "bronze"), of(50, "gold")]}});
    assert_eq!(half_changed_by(&scenario, &strategy), [2, 0]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_that_shall_be_scattered_take_turns_with_others() {
    let scenario = scenario("scatter");
    let strategy = json!({"scatterStrategy": [{"key": "tier", "value": "gold"}]});
    assert_eq!(half_changed_by(&scenario, &strategy), [1, 1]);
}
