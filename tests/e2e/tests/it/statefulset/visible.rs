//! What people see of StatefulSets: columns, events, conditions.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{
    SETS, condition, db, parallel, patch, pods, set, template, until_status, until_updated, with_claims,
};
use crate::claims::storage_class;
use crate::cluster::{LIMIT, Scenario, scenario, text};

/// Waits for an event of the set, of this type and reason, with this message.
fn until_event(scenario: &Scenario, kind: &str, reason: &str, message: &str) {
    wait::until_true(&format!("event {kind} {reason}: {message}"), LIMIT, || {
        let events = scenario.kubectl.list("events", "")?;
        Ok(events.iter().any(|event| {
            event["type"] == kind
                && event["reason"] == reason
                && event["involvedObject"]["kind"] == "StatefulSet"
                && event["involvedObject"]["name"] == "db"
                && event["source"]["component"] == "statefulset-controller"
                && text(event, "/message").starts_with(message)
        }))
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn columns_and_events_of_a_statefulset_are_upstreams() {
    let scenario = scenario("statefulset-visible");
    storage_class(&scenario);
    scenario.kubectl.apply(&with_claims(db(1), "host-path")).unwrap();
    until_updated(&scenario, 1);
    let table = |args: &[&str]| -> Vec<Vec<String>> {
        let text = scenario.kubectl.run(args).unwrap();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().map(words).collect()
    };
    for resource in ["asts", "statefulsets.v1alpha1.apps.kruise.io"] {
        let lines = table(&["get", resource, "-o", "wide"]);
        let columns = [
            "NAME",
            "DESIRED",
            "CURRENT",
            "UPDATED",
            "READY",
            "AGE",
            "CONTAINERS",
            "IMAGES",
        ];
        assert_eq!(lines[0], columns, "{resource}");
        assert_eq!(lines[1][..5], ["db", "1", "1", "1", "1"]);
        assert_eq!(lines[1][6..], ["main", "nginx:1"]);
    }
    let event = |reason: &str, message: &str| until_event(&scenario, "Normal", reason, message);
    event(
        "SuccessfulCreate",
        "create Claim data-db-0 Pod db-0 in StatefulSet db success",
    );
    event("SuccessfulCreate", "create Pod db-0 in StatefulSet db successful");
    patch(&scenario, &template("nginx:2", "b"));
    until_updated(&scenario, 1);
    let revision = text(&set(&scenario), "/status/updateRevision");
    let message = format!("successfully update pod db-0 in-place(revision {revision})");
    event("SuccessfulUpdatePodInPlace", &message);
    patch(&scenario, &json!({"spec": {"replicas": 0}}));
    event("SuccessfulDelete", "delete Pod db-0 in StatefulSet db successful");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_of_a_statefulset_that_cannot_be_created_shows_in_condition_and_event_until_it_can() {
    let scenario = scenario("statefulset-failed-create");
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "two"}, "spec": {"hard": {"pods": "2"}},
    });
    scenario.kubectl.apply(&quota).unwrap();
    wait::until_true("the quota is in force", LIMIT, || {
        let quota = scenario.kubectl.get("resourcequota", "two")?;
        Ok(quota.pointer("/status/hard/pods").is_some())
    })
    .unwrap();
    scenario.kubectl.apply(&parallel(3)).unwrap();
    let failed = wait::until("FailedCreatePod is there", LIMIT, || {
        let set = scenario.kubectl.get(SETS, "db")?;
        let failed = condition(&set, "FailedCreatePod").clone();
        Ok((failed != Value::Null).then_some(failed))
    })
    .unwrap();
    assert_eq!(failed["status"], "True");
    let message = text(&failed, "/message");
    assert!(
        message.starts_with("StatefulPodControl failed to create Pod error: ")
            && message.contains("exceeded quota"),
        "{failed}"
    );
    until_status(&scenario, &json!({"replicas": 2, "readyReplicas": 2}));
    let there = pods(&scenario);
    let refused = ["db-0", "db-1", "db-2"]
        .into_iter()
        .find(|name| !there.contains_key(*name));
    let message = format!("create Pod {} in StatefulSet db failed error: ", refused.unwrap());
    until_event(&scenario, "Warning", "FailedCreate", &message);
    scenario.kubectl.run(&["delete", "resourcequota", "two"]).unwrap();
    until_updated(&scenario, 3);
    wait::until_true("FailedCreatePod is gone", LIMIT, || {
        Ok(condition(&scenario.kubectl.get(SETS, "db")?, "FailedCreatePod").is_null())
    })
    .unwrap();
}
