//! The tutorial's rollout: five replicas, a surge of 20 %, nobody out of service, partition 3 and then 0.

use std::collections::BTreeMap;

use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, container, scenario, text, web};

/// Old and new pods that are not on their way out, and how many of all serve.
type Counts = (usize, usize, usize);

/// The counts after each event, each as often as it changes.
fn counts(events: &[Value], new: &str) -> Vec<Counts> {
    let mut pods: BTreeMap<String, (bool, bool)> = BTreeMap::new();
    let mut seen = Vec::new();
    for event in events {
        let pod = &event["object"];
        let uid = text(pod, "/metadata/uid");
        if event["type"] == "DELETED" || pod["metadata"]["deletionTimestamp"].is_string() {
            pods.remove(&uid);
        } else {
            let conditions = pod["status"]["conditions"].as_array().cloned();
            let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
            let serves = conditions.unwrap_or_default().iter().any(is_ready);
            let is_new = pod["metadata"]["labels"]["controller-revision-hash"] == *new;
            pods.insert(uid, (is_new, serves));
        }
        let updated = pods.values().filter(|(is_new, _)| *is_new).count();
        let serving = pods.values().filter(|(_, serves)| *serves).count();
        let now = (pods.len() - updated, updated, serving);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    seen
}

/// Changes the set and waits; returns the counts of pods on the way, from five that serve on.
fn step(scenario: &Scenario, patch: &Value, status: &Value) -> Vec<(usize, usize)> {
    let watch = Watch::start(&scenario.kubectl, "pods", "app=web").unwrap();
    watch.until_shown(5, LIMIT).unwrap();
    scenario.patch(patch);
    scenario.until_status(status);
    let set = scenario.kubectl.get("clonesets", "web").unwrap();
    let new = text(&set, "/status/updateRevision");
    // The watch may lag behind.
    let updated = usize::try_from(status["updatedReplicas"].as_u64().unwrap()).unwrap();
    wait::until_true("the watch shows the end", LIMIT, || {
        let last = counts(&watch.shown(), &new).pop();
        Ok(last == Some((5 - updated, updated, 5)))
    })
    .unwrap();
    let seen = counts(&watch.stop().unwrap(), &new);
    let complete = seen.into_iter().skip_while(|(_, _, serving)| *serving < 5);
    let mut steps: Vec<(usize, usize)> = Vec::new();
    for (old, new, serving) in complete {
        assert!(
            serving >= 5,
            "one of five is out of service at {old} old, {new} new"
        );
        steps.push((old, new));
    }
    steps.dedup();
    steps
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn each_step_of_a_surge_with_a_partition_counts_as_it_should() {
    let scenario = scenario("tutorial");
    let mut set = web(5);
    let strategy = json!({"type": "ReCreate", "partition": 3, "maxSurge": "20%", "maxUnavailable": 0});
    set["spec"]["updateStrategy"] = strategy;
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"replicas": 5, "readyReplicas": 5}));

    let status = json!({"replicas": 5, "readyReplicas": 5, "expectedUpdatedReplicas": 2,
                        "updatedReplicas": 2, "updatedReadyReplicas": 2});
    let held = step(&scenario, &container("nginx:2", "b"), &status);
    assert_eq!(held, [(5, 0), (5, 1), (4, 1), (4, 2), (3, 2)]);

    let status = json!({"replicas": 5, "readyReplicas": 5, "expectedUpdatedReplicas": 5,
                        "updatedReplicas": 5, "updatedReadyReplicas": 5});
    let lifted = json!({"spec": {"updateStrategy": {"partition": 0}}});
    let finished = step(&scenario, &lifted, &status);
    let expected = [(3, 2), (3, 3), (2, 3), (2, 4), (1, 4), (1, 5), (0, 5)];
    assert_eq!(finished, expected);
}
