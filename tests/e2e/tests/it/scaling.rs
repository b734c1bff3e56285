//! Replicas: which pods are deleted, and which count as available.

use jiff::Timestamp;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{Scenario, scenario, text, web};

/// Longer than a manager on a busy machine is late.
const MIN_READY: i64 = 15;

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_labelled_for_deletion_is_replaced_and_no_other() {
    let scenario = scenario("specified-delete");
    scenario.kubectl.apply(&web(3)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 3}));
    let before = scenario.uids();
    let victim = scenario.pods().first().cloned().unwrap();
    let (name, uid) = (text(&victim, "/metadata/name"), text(&victim, "/metadata/uid"));
    scenario
        .kubectl
        .run(&["label", "pod", &name, "apps.kruise.io/specified-delete=true"])
        .unwrap();
    kruise_e2e::wait::until_true("another pod has its place", crate::cluster::LIMIT, || {
        let uids = scenario.uids();
        Ok(uids.len() == 3 && !uids.contains(&uid))
    })
    .unwrap();
    scenario.until_status(&json!({"readyReplicas": 3, "replicas": 3}));
    let kept = scenario.uids().iter().filter(|uid| before.contains(uid)).count();
    assert_eq!(kept, 2);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_scale_subresource_shows_and_changes_replicas() {
    let scenario = scenario("scale-subresource");
    scenario.kubectl.apply(&web(2)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 2}));
    for version in ["v1alpha1", "v1beta1"] {
        let path = format!("/apis/apps.kruise.io/{version}/namespaces/scale-subresource/clonesets/web/scale");
        let scale = scenario.kubectl.run(&["get", "--raw", &path]).unwrap();
        let scale: Value = serde_json::from_str(&scale).unwrap();
        assert_eq!(scale["spec"], json!({"replicas": 2}));
        assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=web"}));
    }
    let patch = [
        "patch",
        "clonesets",
        "web",
        "--subresource=scale",
        "--type=merge",
        "-p",
    ];
    let patch = [&patch[..], &[r#"{"spec":{"replicas":1}}"#]].concat();
    scenario.kubectl.run(&patch).unwrap();
    scenario.until_status(&json!({"replicas": 1, "readyReplicas": 1}));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_ready_pod_is_available_only_after_min_ready_seconds() {
    let scenario = scenario("min-ready");
    let mut set = web(2);
    set["spec"]["minReadySeconds"] = json!(MIN_READY);
    scenario.kubectl.create(&set).unwrap();
    let watch = Watch::start(&scenario.kubectl, "clonesets", "").unwrap();
    scenario.until_status(&json!({"availableReplicas": 2, "updatedAvailableReplicas": 2}));
    assert_ready_for_long(&scenario);
    // A pod that comes later is counted on its own.
    scenario.patch(&json!({"spec": {"replicas": 3}}));
    scenario.until_status(&json!({"availableReplicas": 3}));
    assert_ready_for_long(&scenario);
    // A watch: on a busy machine a poll may miss the seconds in between.
    let statuses = watch.stop().unwrap();
    for (ready, available) in [(2, 0), (3, 2)] {
        let shown = |event: &Value| {
            let status = &event["object"]["status"];
            status["readyReplicas"] == ready && status["availableReplicas"] == available
        };
        assert!(
            statuses.iter().any(shown),
            "{ready} ready, {available} available: {statuses:?}"
        );
    }
}

/// By now each pod has been Ready for as long as an available one must. The server's times are whole seconds.
fn assert_ready_for_long(scenario: &Scenario) {
    let now = Timestamp::now().as_second();
    for pod in scenario.pods() {
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let ready = conditions.iter().find(|one| one["type"] == "Ready").unwrap();
        let since: Timestamp = text(ready, "/lastTransitionTime").parse().unwrap();
        assert!(now - since.as_second() >= MIN_READY, "{pod}");
    }
}
