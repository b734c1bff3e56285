//! What people see: columns, events, conditions.

use std::time::Duration;

use kruise_e2e::audit::{Counts, Entry, MANAGER};
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, container, explained, scenario, text, web};

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn columns_are_those_that_people_know() {
    let scenario = scenario("columns");
    scenario.kubectl.apply(&web(2)).unwrap();
    scenario.until_status(&json!({"updatedAvailableReplicas": 2}));
    let table = |args: &[&str]| -> Vec<Vec<String>> {
        let text = scenario.kubectl.run(args).unwrap();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().map(words).collect()
    };
    let columns = [
        "NAME",
        "DESIRED",
        "UPDATED",
        "UPDATED_READY",
        "UPDATED_AVAILABLE",
        "READY",
        "TOTAL",
        "AGE",
    ];
    for resource in ["clonesets", "clone", "clonesets.v1alpha1.apps.kruise.io"] {
        let lines = table(&["get", resource]);
        assert_eq!(lines[0], columns);
        assert_eq!(lines[1][..7], ["web", "2", "2", "2", "2", "2", "2"]);
    }
    let wide = table(&["get", "clone", "-o", "wide"]);
    assert_eq!(wide[0][8..], ["CONTAINERS", "IMAGES", "SELECTOR"]);
    assert_eq!(wide[1][8..], ["main", "nginx:1", "app=web"]);
}

/// Waits for an event of the set, of this type and reason, whose message starts like this.
fn until_event(scenario: &Scenario, kind: &str, reason: &str, message: &str) {
    wait::until_true(&format!("event {kind} {reason}: {message}"), LIMIT, || {
        let events = scenario.kubectl.list("events", "")?;
        Ok(events.iter().any(|event| {
            event["type"] == kind
                && event["reason"] == reason
                && event["involvedObject"]["kind"] == "CloneSet"
                && event["involvedObject"]["name"] == "web"
                && event["source"]["component"] == "cloneset-controller"
                && text(event, "/message").starts_with(message)
        }))
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn events_tell_what_was_done_in_upstreams_words() {
    let scenario = scenario("events");
    scenario.kubectl.apply(&web(1)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 1}));
    let name = || text(scenario.pods().first().unwrap(), "/metadata/name");
    let revision = || {
        text(
            &scenario.kubectl.get("clonesets", "web").unwrap(),
            "/status/updateRevision",
        )
    };
    let first = name();
    until_event(
        &scenario,
        "Normal",
        "SuccessfulCreate",
        &format!("succeed to create pod {first}"),
    );
    scenario.patch(&container("nginx:2", "b"));
    scenario.until_status(&json!({"updatedReadyReplicas": 1}));
    let message = format!(
        "successfully update pod {first} in-place(revision {})",
        revision()
    );
    until_event(&scenario, "Normal", "SuccessfulUpdatePodInPlace", &message);
    scenario.patch(&container("nginx:2", "c"));
    scenario.until_status(&json!({"updatedReadyReplicas": 1, "replicas": 1}));
    // Upstream labels the pod first; here it is deleted at once, and the message is about that.
    let message = format!(
        "successfully delete pod {first} to recreate it for update(revision {})",
        revision()
    );
    until_event(&scenario, "Normal", "SuccessfulUpdatePodReCreate", &message);
    let second = name();
    scenario.patch(&json!({"spec": {"replicas": 0}}));
    until_event(
        &scenario,
        "Normal",
        "SuccessfulDelete",
        &format!("succeed to delete pod {second}"),
    );
    let described = scenario.kubectl.run(&["describe", "clonesets", "web"]).unwrap();
    for reason in [
        "SuccessfulCreate",
        "SuccessfulUpdatePodInPlace",
        "SuccessfulDelete",
    ] {
        assert!(described.contains(reason), "{described}");
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_that_cannot_be_created_shows_in_condition_and_event_until_it_can() {
    let scenario = scenario("failed-create");
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}},
    });
    scenario.kubectl.apply(&quota).unwrap();
    wait::until_true("the quota is in force", LIMIT, || {
        let quota = scenario.kubectl.get("resourcequota", "one")?;
        Ok(quota.pointer("/status/hard/pods").is_some())
    })
    .unwrap();
    scenario.kubectl.apply(&web(2)).unwrap();
    let condition = |status: &'static str| {
        wait::until(&format!("FailedScale is {status}"), LIMIT, || {
            let set = scenario.kubectl.get("clonesets", "web")?;
            let conditions = set["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let found =
                |condition: &Value| condition["type"] == "FailedScale" && condition["status"] == status;
            Ok(conditions.into_iter().find(found))
        })
        .unwrap()
    };
    let failed = condition("True");
    assert!(text(&failed, "/message").contains("exceeded quota"), "{failed}");
    until_event(&scenario, "Warning", "FailedCreate", "failed to create pod: ");
    scenario.until_status(&json!({"replicas": 1, "readyReplicas": 1}));
    // Each attempt is for another name, and is reported as the one before: no attempt leads to the next one.
    let mut log = scenario.audit_log();
    wait::observe_for(Duration::from_secs(10));
    let mut requests = log.read_new(MANAGER).unwrap();
    requests.retain(Entry::is_write);
    let attempts = requests.iter().filter(|request| request.resource == "pods");
    assert!(attempts.count() <= 20, "{}", Counts::of(&requests));

    scenario.kubectl.run(&["delete", "resourcequota", "one"]).unwrap();
    scenario.until_status(&json!({"replicas": 2, "readyReplicas": 2}));
    condition("False");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_stalled_rollout_is_reported_in_condition_event_and_explanation_until_it_moves() {
    let scenario = scenario("stalled");
    scenario.kubectl.apply(&web(2)).unwrap();
    scenario.until_status(&json!({"availableReplicas": 2}));
    let conditions = || -> anyhow::Result<Vec<Value>> {
        let set = scenario.kubectl.get("clonesets", "web")?;
        let conditions = set["status"]["conditions"].as_array();
        Ok(conditions.cloned().unwrap_or_default())
    };
    let until = |kind: &str, status: &str, reason: &str| {
        wait::until(&format!("{kind} is {status}, {reason}"), LIMIT, || {
            let found = |condition: &Value| {
                condition["type"] == kind && condition["status"] == status && condition["reason"] == reason
            };
            Ok(conditions()?.into_iter().find(found))
        })
        .unwrap()
    };
    // Pods that no node takes.
    let template = |selector: &Value| json!({"spec": {"progressDeadlineSeconds": 3, "template": {"spec": {"nodeSelector": selector}}}});
    scenario.patch(&template(&json!({"lab.test/nowhere": "yes"})));
    let late = until("Progressing", "False", "ProgressDeadlineExceeded");
    let message = text(&late, "/message");
    assert!(message.ends_with(" has timed out progressing"), "{message}");
    let stalled = until("Stalled", "True", "ProgressDeadlineExceeded");
    let message = text(&stalled, "/message");
    assert!(
        message.starts_with("no progress for 3 seconds; pods: "),
        "{message}"
    );
    until_event(&scenario, "Warning", "Stalled", &message);
    wait::until_true("the explanation says so", LIMIT, || {
        let output = explained(&scenario, &["clone/web", "--namespace", "stalled"]);
        let waits_for = "pods: 1 updated and not available, 1 without a node, 1 of older revisions in all";
        Ok(output.contains("stalled: nothing has moved for ") && output.contains(waits_for))
    })
    .unwrap();

    scenario.patch(&template(&Value::Null));
    scenario.until_status(&json!({"replicas": 2, "updatedAvailableReplicas": 2, "availableReplicas": 2}));
    until("Progressing", "True", "CloneSetAvailable");
    assert!(
        conditions()
            .unwrap()
            .iter()
            .all(|condition| condition["type"] != "Stalled")
    );
}
