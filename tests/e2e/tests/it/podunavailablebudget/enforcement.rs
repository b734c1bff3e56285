//! Requests that a budget lets pass or refuses, and who depends on a manager for that.

use kruise_e2e::kubectl::Kubectl;

use super::*;
use crate::cluster::scenario_gated;
use crate::own_nodes::{GROUP, Nodes};

pub(super) const EXHAUSTED: &str = "is forbidden: pub unavailable allowed is negative";

/// Evicts a pod as clients do. Returns the error; empty if there is none.
fn evict(kubectl: &Kubectl, pod: &str, options: &Value) -> String {
    let namespace = kubectl.namespace().unwrap_or_default();
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace}, "deleteOptions": options});
    let create = ["create", "--raw", &path, "-f", "-"];
    kubectl.attempt(&create, &eviction.to_string()).unwrap().1
}

/// Is this webhook called for requests in `budget-unmanaged`, and not for those of every namespace? Nobody has
/// widened its condition for the moment.
fn is_narrow(kubectl: &Kubectl, phase: &str, webhook: &str) -> anyhow::Result<bool> {
    let name = format!("kruise-{phase}-webhook-configuration");
    let stored = kubectl.get(&format!("{phase}webhookconfigurations"), &name)?;
    let is_widened = !stored["metadata"]["annotations"]["kruise.io/widened-match-conditions"].is_null();
    let entries = stored["webhooks"].as_array().into_iter().flatten();
    let mut found = entries.filter(|entry| entry["name"] == webhook);
    let condition = found
        .next()
        .map(|entry| text(entry, "/matchConditions/0/expression"));
    let is_of_ours = |text: String| text.contains("== 'budget-unmanaged'") && !text.contains("true");
    Ok(!is_widened && condition.is_some_and(is_of_ours))
}

fn names(scenario: &Scenario) -> Vec<String> {
    let pods = scenario.kubectl.list("pods", "app=web").unwrap();
    pods.iter().map(|pod| text(pod, "/metadata/name")).collect()
}

fn status(scenario: &Scenario) -> Value {
    scenario.kubectl.get("podunavailablebudgets", "web").unwrap()["status"].clone()
}

/// Changes the image of a pod in place. Returns the error; empty if there is none.
fn update(kubectl: &Kubectl, pod: &str) -> String {
    let image = format!("{pod}-image");
    let patch = json!({"spec": {"containers": [{"name": "main", "image": image}]}}).to_string();
    let patch = ["patch", "pod", pod, "-p", &patch];
    kubectl.attempt(&patch, "").unwrap().1
}

/// So many pods without an owner, all of them ready and covered by a budget that lets one be unavailable.
fn guarded(scenario: &Scenario, number: i64) {
    let kubectl = &scenario.kubectl;
    let selector = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"selector": selector, "maxUnavailable": 1, "protectTotalReplicas": number});
    kubectl.apply(&budget("web", spec)).unwrap();
    for index in 0..number {
        let mut pod = bare(&format!("web-{index}"), "web");
        pod["spec"]["terminationGracePeriodSeconds"] = json!(0);
        kubectl.apply(&pod).unwrap();
    }
    until_numbers(scenario, "web", [1, number, number - 1, number]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn evictions_beyond_the_budget_are_to_be_tried_again_and_deletions_are_forbidden() {
    let scenario = scenario("budget-refuses");
    let kubectl = &scenario.kubectl;
    guarded(&scenario, 3);
    for pod in kubectl.list("pods", "app=web").unwrap() {
        let annotations = &pod["metadata"]["annotations"];
        assert!(
            RELATED.iter().all(|key| annotations[key] == "web"),
            "linked when it was created: {annotations}"
        );
    }
    // Dry runs in every form leave the budget as it is.
    assert_eq!(evict(kubectl, "web-0", &json!({"dryRun": ["All"]})), "");
    kubectl
        .run(&["delete", "pod", "web-0", "--dry-run=server"])
        .unwrap();
    assert_eq!(status(&scenario)["unavailableAllowed"], 1);

    assert_eq!(evict(kubectl, "web-0", &Value::Null), "");
    let refused = evict(kubectl, "web-1", &Value::Null);
    assert!(
        refused.contains("TooManyRequests")
            && refused.contains("vpodeviction.kb.io")
            && refused.contains(EXHAUSTED),
        "{refused}"
    );
    let refused = kubectl.refused(&["delete", "pod", "web-1"], "").unwrap();
    assert!(
        refused.contains("(Forbidden)") && refused.contains("vpod.kb.io") && refused.contains(EXHAUSTED),
        "{refused}"
    );
    assert_eq!(
        update(kubectl, "web-1"),
        "",
        "updates are limited with their gate only"
    );
    wait::until_true("an event is on the budget", LIMIT, || {
        let events = kubectl.list("events", "")?;
        Ok(events.iter().any(|event| {
            event["reason"] == "PubPreventPodDeletion"
                && event["involvedObject"]["kind"] == "PodUnavailableBudget"
                && event["involvedObject"]["name"] == "web"
                && event["source"]["component"] == "pub-controller"
        }))
    })
    .unwrap();
    // Those that are exempt, or do not exist, go.
    kubectl
        .run(&["annotate", "pod", "web-1", "pub.kruise.io/no-protect=true"])
        .unwrap();
    kubectl.run(&["delete", "pod", "web-1"]).unwrap();
    assert!(evict(kubectl, "absent", &Value::Null).contains("NotFound"));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_budget_with_operations_and_an_ignored_selector_limits_nothing_else() {
    let scenario = scenario("budget-operations");
    let kubectl = &scenario.kubectl;
    guarded(&scenario, 3);
    let patch = |spec: Value| {
        let patch = json!({"spec": spec});
        kubectl.patch("podunavailablebudgets", "web", &patch).unwrap();
    };
    patch(json!({"maxUnavailable": 0, "protectOperations": ["EVICT"]}));
    assert!(
        evict(kubectl, "web-0", &Value::Null).contains(EXHAUSTED),
        "at once"
    );
    kubectl.run(&["delete", "pod", "web-0"]).unwrap();
    patch(json!({"ignoredPodSelector": {"matchLabels": {"force": "true"}}}));
    assert!(evict(kubectl, "web-1", &Value::Null).contains(EXHAUSTED));
    kubectl.run(&["label", "pod", "web-1", "force=true"]).unwrap();
    wait::until_true("the label is seen", LIMIT, || {
        Ok(evict(kubectl, "web-1", &Value::Null).is_empty())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_node_is_drained_within_the_budget() {
    let scenario = scenario("budget-drain");
    let kubectl = &scenario.kubectl;
    // A node that is cordoned takes nobody else's pods.
    let nodes = Nodes::new(&scenario, 2);
    kubectl.apply(&of_web("web", json!(1))).unwrap();
    let mut web = deployment(4);
    let pods = &mut web["spec"]["template"]["spec"];
    pods["nodeSelector"] = json!({(GROUP): nodes.group});
    pods["tolerations"] = json!([{"key": GROUP, "value": nodes.group}]);
    kubectl.apply(&web).unwrap();
    until_numbers(&scenario, "web", [1, 4, 3, 4]);
    let pods = kubectl.list("pods", "app=web").unwrap();
    let node = text(&pods[0], "/spec/nodeName");
    let before = names(&scenario);
    let drain = ["drain", &node, "--force", "--ignore-daemonsets", "--timeout=180s"];
    kubectl.run(&drain).unwrap();
    for pod in kubectl.list("pods", "app=web").unwrap() {
        assert!(
            text(&pod, "/spec/nodeName") != node || !before.contains(&text(&pod, "/metadata/name")),
            "{pod}"
        );
    }
    until_numbers(&scenario, "web", [1, 4, 3, 4]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn with_the_update_gate_updates_in_place_and_labels_are_limited_and_resizes_too() {
    let scenario = scenario_gated("budget-updates");
    let kubectl = &scenario.kubectl;
    guarded(&scenario, 3);
    kubectl
        .patch(
            "podunavailablebudgets",
            "web",
            &json!({"spec": {"maxUnavailable": 0}}),
        )
        .unwrap();
    // The budget allows less once its status was counted again.
    until_numbers(&scenario, "web", [0, 3, 3, 3]);
    let refused = update(kubectl, "web-1");
    assert!(
        refused.contains("vpod.kb.io") && refused.contains(EXHAUSTED),
        "{refused}"
    );
    kubectl.run(&["label", "pod", "web-1", "any=label"]).unwrap();
    let label = ["label", "pod", "web-1", "unavailable-pod.kruise.io/x=y"];
    assert!(kubectl.refused(&label, "").unwrap().contains(EXHAUSTED));
    let resources = json!({"requests": {"cpu": "20m"}});
    let resize = json!({"spec": {"containers": [{"name": "main", "resources": resources}]}}).to_string();
    let resize = ["patch", "pod", "web-1", "--subresource=resize", "-p", &resize];
    // Requests that there were none of change the class of service: the server refuses it, or the budget does.
    assert!(!kubectl.attempt(&resize, "").unwrap().1.is_empty());
    kubectl
        .patch(
            "podunavailablebudgets",
            "web",
            &json!({"spec": {"maxUnavailable": 2}}),
        )
        .unwrap();
    // The budget allows more once its status was counted again.
    wait::until_true("an update within the budget is allowed", LIMIT, || {
        Ok(update(kubectl, "web-1").is_empty())
    })
    .unwrap();
    assert!(status(&scenario)["unavailablePods"]["web-1"].is_string());
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn without_a_manager_only_guarded_pods_and_evictions_beside_them_wait_for_one() {
    let scenario = scenario_alone("budget-unmanaged");
    let kubectl = &scenario.kubectl;
    // A key that no other test selects pods by: what others widened may last for a minute.
    let pod = |name: &str, app: &str| {
        let mut pod = bare(name, app);
        pod["metadata"]["labels"] = json!({"budget-unmanaged": app});
        pod
    };
    let selector = json!({"matchLabels": {"budget-unmanaged": "web"}});
    let spec = json!({"selector": selector, "maxUnavailable": 1, "protectTotalReplicas": 2});
    kubectl.apply(&budget("web", spec)).unwrap();
    for name in ["web-0", "web-1"] {
        kubectl.apply(&pod(name, "web")).unwrap();
    }
    until_numbers(&scenario, "web", [1, 2, 1, 2]);
    let elsewhere = kubectl.in_namespace("budget-unguarded");
    kubectl.run(&["create", "namespace", "budget-unguarded"]).unwrap();
    for name in ["other-0", "other-1", "other-2"] {
        for kubectl in [kubectl, &elsewhere] {
            kubectl.apply(&pod(name, "other")).unwrap();
        }
    }
    wait::until_true(
        "both webhooks are called for what is guarded only",
        wait::QUIET,
        || {
            Ok(is_narrow(kubectl, "mutating", "mpod-sidecars.kb.io")?
                && is_narrow(kubectl, "validating", "vpodeviction.kb.io")?)
        },
    )
    .unwrap();
    let _stopped = Stopped::shared(kubectl.kubeconfig());
    // API servers learn of a narrower condition a moment after it is stored.
    wait::until_true("nothing of another namespace waits", wait::QUIET, || {
        Ok(evict(&elsewhere, "other-0", &Value::Null).is_empty())
    })
    .unwrap();
    elsewhere.run(&["label", "pod", "other-1", "a=b"]).unwrap();
    elsewhere
        .run(&["delete", "pod", "other-1", "--grace-period=0", "--force"])
        .unwrap();
    elsewhere.apply(&pod("new", "web")).unwrap();

    let waits = |error: &str, webhook: &str| {
        assert!(
            error.contains("failed calling webhook") && error.contains(webhook),
            "{error}"
        );
    };
    waits(&evict(kubectl, "web-0", &Value::Null), "vpodeviction.kb.io");
    waits(&evict(kubectl, "other-0", &Value::Null), "vpodeviction.kb.io");
    waits(
        &kubectl.refused(&["delete", "pod", "web-0"], "").unwrap(),
        "vpod.kb.io",
    );
    // Pods that name no budget are created, updated and deleted beside them, and labels of those that do are changed.
    kubectl.apply(&pod("new", "other")).unwrap();
    kubectl.run(&["label", "pod", "web-0", "a=b"]).unwrap();
    kubectl
        .run(&["delete", "pod", "other-1", "--grace-period=0", "--force"])
        .unwrap();
}
