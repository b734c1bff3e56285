//! PodUnavailableBudgets: their numbers, and the pods that name them.

mod enforcement;
mod load;
mod targets;
mod unwanted;

use std::time::Duration;

use jiff::Timestamp;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, Stopped, explained, scenario, scenario_alone, text};

const RELATED: [&str; 2] = ["pub.kruise.io/related-pub", "kruise.io/related-pub"];

/// A Deployment `web`, without a grace period.
fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "nginx:1"}]},
            },
        },
    })
}

/// A pod without an owner.
fn bare(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    })
}

fn budget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget", "metadata": {"name": name}, "spec": spec})
}

/// A budget for the Deployment `web`.
fn of_web(name: &str, most_unavailable: Value) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    budget(
        name,
        json!({"targetRef": target, "maxUnavailable": most_unavailable}),
    )
}

/// Waits until the numbers of the budget are these: allowed, current, desired and total.
fn until_numbers(scenario: &Scenario, name: &str, numbers: [i64; 4]) {
    let mut seen = Value::Null;
    let members = [
        "unavailableAllowed",
        "currentAvailable",
        "desiredAvailable",
        "totalReplicas",
    ];
    let reached = wait::until_true(&format!("{name} has {numbers:?}"), wait::QUIET, || {
        let budget = scenario.kubectl.get("podunavailablebudgets", name)?;
        seen = budget["status"].clone();
        let is_current = seen["observedGeneration"] == budget["metadata"]["generation"];
        let mut wanted = members.iter().zip(numbers);
        Ok(is_current && wanted.all(|(member, number)| seen[member] == number))
    });
    reached.unwrap_or_else(|error| panic!("{error:#}: {seen}"));
}

/// Waits until all pods of this `app` name this budget, in both annotations.
fn until_named(scenario: &Scenario, app: &str, budget: &str) {
    wait::until_true(&format!("pods of {app} name {budget}"), LIMIT, || {
        let pods = scenario.kubectl.list("pods", &format!("app={app}"))?;
        let names = |pod: &Value| {
            RELATED
                .iter()
                .all(|key| pod["metadata"]["annotations"][key] == budget)
        };
        Ok(!pods.is_empty() && pods.iter().all(names))
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_numbers_of_a_budget_follow_the_scale_of_its_target_and_its_own_edits() {
    let scenario = scenario("budget-numbers");
    let kubectl = &scenario.kubectl;
    // Before there is anything to count.
    kubectl.apply(&of_web("web", json!(1))).unwrap();
    until_numbers(&scenario, "web", [0, 0, 0, 0]);
    wait::until_true("an event says that there are no pods", LIMIT, || {
        let events = kubectl.list("events", "")?;
        Ok(events
            .iter()
            .any(|event| event["reason"] == "NoPods" && event["message"] == "No matching pods found"))
    })
    .unwrap();
    kubectl.apply(&deployment(3)).unwrap();
    until_numbers(&scenario, "web", [1, 3, 2, 3]);
    until_named(&scenario, "web", "web");
    kubectl.run(&["scale", "deployment/web", "--replicas=5"]).unwrap();
    until_numbers(&scenario, "web", [1, 5, 4, 5]);
    kubectl
        .patch(
            "podunavailablebudgets",
            "web",
            &json!({"spec": {"maxUnavailable": "50%"}}),
        )
        .unwrap();
    until_numbers(&scenario, "web", [3, 5, 2, 5]);
    let text = explained(&scenario, &["pub/web", "-n", "budget-numbers"]);
    assert!(
        text.contains("5 pods are available, 2 must be: 3 may become unavailable"),
        "{text}"
    );
    kubectl.run(&["scale", "deployment/web", "--replicas=2"]).unwrap();
    until_numbers(&scenario, "web", [1, 2, 1, 2]);
    kubectl.run(&["delete", "deployment", "web"]).unwrap();
    until_numbers(&scenario, "web", [0, 0, 0, 0]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_of_a_budget_that_is_renamed_name_the_new_one() {
    let scenario = scenario("budget-renamed");
    let kubectl = &scenario.kubectl;
    kubectl.apply(&deployment(2)).unwrap();
    kubectl.apply(&of_web("old", json!(1))).unwrap();
    until_named(&scenario, "web", "old");
    kubectl.run(&["delete", "podunavailablebudgets", "old"]).unwrap();
    kubectl.apply(&of_web("new", json!(1))).unwrap();
    until_named(&scenario, "web", "new");
    until_numbers(&scenario, "new", [1, 2, 1, 2]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_budget_of_labels_counts_all_workloads_of_its_pods_and_one_that_is_scaled_to_zero_no_more() {
    let scenario = scenario("budget-labels");
    let kubectl = &scenario.kubectl;
    let mut other = deployment(2);
    other["metadata"]["name"] = json!("other");
    other["spec"]["selector"]["matchLabels"] = json!({"app": "web", "of": "other"});
    other["spec"]["template"]["metadata"]["labels"] = json!({"app": "web", "of": "other"});
    let mut web = deployment(3);
    web["spec"]["selector"]["matchLabels"] = json!({"app": "web", "of": "web"});
    web["spec"]["template"]["metadata"]["labels"] = json!({"app": "web", "of": "web"});
    kubectl.apply(&web).unwrap();
    kubectl.apply(&other).unwrap();
    let selector = json!({"matchLabels": {"app": "web"}});
    kubectl
        .apply(&budget(
            "all",
            json!({"selector": selector, "minAvailable": "40%"}),
        ))
        .unwrap();
    until_numbers(&scenario, "all", [3, 5, 2, 5]);
    kubectl
        .run(&["scale", "deployment/other", "--replicas=0"])
        .unwrap();
    until_numbers(&scenario, "all", [1, 3, 2, 3]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_budget_with_charges_half_way_is_taken_over_and_is_whole_again_when_they_expire() {
    let scenario = scenario_alone("budget-takeover");
    let kubectl = &scenario.kubectl;
    kubectl.apply(&deployment(3)).unwrap();
    kubectl.apply(&of_web("web", json!(1))).unwrap();
    until_numbers(&scenario, "web", [1, 3, 2, 3]);
    until_named(&scenario, "web", "web");
    let pods = scenario.pods();
    let there = text(&pods[0], "/metadata/name");
    let before: Vec<String> = versions(&scenario);
    {
        let _stopped = Stopped::shared(kubectl.kubeconfig());
        // As the specification says that OpenKruise leaves it: two pods are charged, of which one is gone.
        let now = now();
        let charged = json!({"status": {"unavailableAllowed": 0, "disruptedPods": {there.as_str(): now, "web-gone": now}}});
        kubectl
            .patch_status("podunavailablebudgets", "web", &charged)
            .unwrap();
    }
    wait::until_true(
        "the charge of the pod that is gone is dropped",
        wait::QUIET,
        || {
            let status = kubectl.get("podunavailablebudgets", "web")?["status"].clone();
            Ok(status["disruptedPods"]["web-gone"].is_null())
        },
    )
    .unwrap();
    until_numbers(&scenario, "web", [1, 3, 2, 3]);
    let status = kubectl.get("podunavailablebudgets", "web").unwrap()["status"].clone();
    assert!(status["disruptedPods"].is_null(), "{status}");
    wait::until_true("an event says that the pod was not deleted", wait::QUIET, || {
        let events = kubectl.list("events", "")?;
        Ok(events.iter().any(|event| {
            event["reason"] == "NotDeleted"
                && event["involvedObject"]["name"] == *there
                && event["message"]
                    == "Pod was expected by PUB budget-takeover/web to be deleted but it wasn't"
        }))
    })
    .unwrap();
    assert_eq!(versions(&scenario), before, "no pod was written");
}

/// The current time, as the API server writes it.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Names and versions of the pods of `web`.
fn versions(scenario: &Scenario) -> Vec<String> {
    // Kubelets may still be writing the status of a pod that has just become ready.
    wait::observe_for(Duration::from_secs(2));
    let pods = scenario.pods();
    let version = |pod: &Value| {
        format!(
            "{} {}",
            text(pod, "/metadata/name"),
            text(pod, "/metadata/resourceVersion")
        )
    };
    let mut versions: Vec<String> = pods.iter().map(version).collect();
    versions.sort();
    versions
}
