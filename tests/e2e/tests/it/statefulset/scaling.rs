//! Pods that fail, pods that somebody wants replaced, and the limits of both.

use std::time::Duration;

use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use super::{
    all_in_service, at_every_moment, ended, in_service, parallel, patch, pods, uid, until, until_status,
};
use crate::cluster::{LIMIT, Scenario, scenario};

/// Writes the status of a pod as a kubelet does.
fn report(scenario: &Scenario, pod: &str, status: &Value) {
    let status = json!({"status": status}).to_string();
    let patch = [
        "patch",
        "pod",
        pod,
        "--subresource=status",
        "--type=strategic",
        "-p",
        &status,
    ];
    scenario.kubectl.run(&patch).unwrap();
}

/// Takes a pod out of service, or back, as somebody else would: the nodes know nothing of it, and the manager
/// leaves it.
fn serve(scenario: &Scenario, pod: &str, serves: bool) {
    let (status, held_by) = if serves {
        ("True", "[]")
    } else {
        ("False", r#"[{"userAgent":"e2e","key":"out"}]"#)
    };
    let condition = json!({"type": "KruisePodReady", "status": status, "message": held_by});
    report(scenario, pod, &json!({"conditions": [condition]}));
}

/// Waits until another pod has this name, and all are in service.
fn until_replaced(scenario: &Scenario, name: &str, old: &str) {
    until(
        scenario,
        "pods",
        &format!("another {name} is in service"),
        |pods| pods.get(name).is_some_and(|pod| uid(pod) != old) && pods.len() == 4 && all_in_service(pods),
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_that_failed_or_shall_be_deleted_are_replaced_within_the_limits() {
    let scenario = scenario("statefulset-replaced");
    let mut set = parallel(1);
    set["spec"]["scaleStrategy"] = json!({"maxUnavailable": 1});
    scenario.kubectl.apply(&set).unwrap();
    until_status(&scenario, &json!({"readyReplicas": 1}));
    let watch = Watch::start(&scenario.kubectl, "pods", "app=db").unwrap();
    watch.until_shown(1, LIMIT).unwrap();
    patch(&scenario, &json!({"spec": {"replicas": 4}}));
    until_status(&scenario, &json!({"readyReplicas": 4, "availableReplicas": 4}));
    let events = ended(watch, "four pods in service", |pods| {
        pods.len() == 4 && all_in_service(pods)
    });
    at_every_moment(&events, |pods, _| {
        let waiting = pods.values().filter(|pod| !in_service(pod)).count();
        assert!(waiting <= 1, "{pods:?}");
    });

    // An evicted pod is replaced, though it is itself all that the limit allows.
    let evicted = uid(&pods(&scenario)["db-1"]);
    report(
        &scenario,
        "db-1",
        &json!({"phase": "Failed", "reason": "Evicted"}),
    );
    until_replaced(&scenario, "db-1", &evicted);

    // A pod that shall be deleted waits while another one is out of service.
    serve(&scenario, "db-0", false);
    until_status(&scenario, &json!({"readyReplicas": 3}));
    let asked = uid(&pods(&scenario)["db-2"]);
    let label = ["label", "pod", "db-2", "apps.kruise.io/specified-delete=true"];
    scenario.kubectl.run(&label).unwrap();
    wait::observe_for(Duration::from_secs(2));
    let waiting = scenario.kubectl.get("pod", "db-2").unwrap();
    assert_eq!(uid(&waiting), asked);
    assert!(!super::is_terminating(&waiting), "{waiting}");
    serve(&scenario, "db-0", true);
    until_replaced(&scenario, "db-2", &asked);
    until_status(&scenario, &json!({"replicas": 4, "readyReplicas": 4}));
}
