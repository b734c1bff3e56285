//! Pods that nobody wants: a budget lets them go.

use super::{enforcement::EXHAUSTED, *};

/// A budget that lets no pod of `app=web` go.
fn strict() -> Value {
    budget(
        "all",
        json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0}),
    )
}

/// A Deployment whose pods have the label `app=web`, as those of others.
fn one_of(name: &str, replicas: u32) -> Value {
    let mut deployment = deployment(replicas);
    deployment["metadata"]["name"] = json!(name);
    for labels in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        *deployment.pointer_mut(labels).unwrap() = json!({"app": "web", "of": name});
    }
    deployment
}

fn until_gone(scenario: &Scenario, selector: &str) {
    wait::until_true(&format!("pods of {selector} are gone"), LIMIT, || {
        Ok(scenario.kubectl.list("pods", selector)?.is_empty())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_pods_of_a_deployment_that_is_deleted_go_below_a_budget_that_selects_them() {
    let scenario = scenario("budget-unwanted");
    let kubectl = &scenario.kubectl;
    kubectl.apply(&strict()).unwrap();
    for cascade in ["background", "foreground"] {
        kubectl.apply(&deployment(3)).unwrap();
        until_numbers(&scenario, "all", [0, 3, 3, 3]);
        until_named(&scenario, "web", "all");
        let cascade = format!("--cascade={cascade}");
        kubectl
            .run(&["delete", "deployment", "web", &cascade, "--timeout=600s"])
            .unwrap();
        until_gone(&scenario, "app=web");
        until_numbers(&scenario, "all", [0, 0, 0, 0]);
    }
    // Pods that are left behind are those of their ReplicaSet.
    kubectl.apply(&deployment(2)).unwrap();
    until_numbers(&scenario, "all", [0, 2, 2, 2]);
    kubectl
        .run(&["delete", "deployment", "web", "--cascade=orphan"])
        .unwrap();
    let pod = text(&scenario.pods()[0], "/metadata/name");
    let refused = kubectl.refused(&["delete", "pod", &pod], "").unwrap();
    assert!(refused.contains(EXHAUSTED), "{refused}");
    until_numbers(&scenario, "all", [0, 2, 2, 2]);
    kubectl
        .run(&["delete", "replicasets", "-l", "app=web", "--wait=false"])
        .unwrap();
    until_gone(&scenario, "app=web");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn of_several_workloads_below_a_budget_those_that_are_there_keep_their_pods() {
    let scenario = scenario("budget-several");
    let kubectl = &scenario.kubectl;
    kubectl.apply(&strict()).unwrap();
    kubectl.apply(&one_of("there", 3)).unwrap();
    kubectl.apply(&one_of("gone", 2)).unwrap();
    until_numbers(&scenario, "all", [0, 5, 5, 5]);
    until_named(&scenario, "web", "all");
    kubectl
        .run(&["delete", "deployment", "gone", "--wait=false"])
        .unwrap();
    until_gone(&scenario, "of=gone");
    until_numbers(&scenario, "all", [0, 3, 3, 3]);
    let pod = text(&scenario.pods()[0], "/metadata/name");
    let refused = kubectl.refused(&["delete", "pod", &pod], "").unwrap();
    assert!(refused.contains(EXHAUSTED), "{refused}");
    kubectl
        .run(&["scale", "deployment/there", "--replicas=0"])
        .unwrap();
    until_gone(&scenario, "app=web");
    kubectl
        .run(&["scale", "deployment/there", "--replicas=2"])
        .unwrap();
    until_numbers(&scenario, "all", [0, 2, 2, 2]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_budget_with_a_fixed_minimum_lets_the_pods_of_its_target_go_once_that_is_deleted() {
    let scenario = scenario("budget-minimum");
    let kubectl = &scenario.kubectl;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"targetRef": target, "minAvailable": 2, "protectTotalReplicas": 2});
    kubectl.apply(&budget("web", spec)).unwrap();
    kubectl.apply(&deployment(2)).unwrap();
    until_numbers(&scenario, "web", [0, 2, 2, 2]);
    until_named(&scenario, "web", "web");
    kubectl
        .run(&["delete", "deployment", "web", "--wait=false"])
        .unwrap();
    until_gone(&scenario, "app=web");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_namespace_that_ends_lets_go_of_pods_that_never_had_a_controller() {
    let scenario = scenario("budget-namespace");
    let kubectl = &scenario.kubectl;
    let mut pod = bare("web-0", "web");
    pod["spec"]["terminationGracePeriodSeconds"] = json!(0);
    let spec =
        json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0, "protectTotalReplicas": 1});
    // The budget outlives the first deletions.
    let mut guard = budget("all", spec);
    guard["metadata"]["finalizers"] = json!(["example.com/held"]);
    kubectl.apply(&guard).unwrap();
    kubectl.apply(&pod).unwrap();
    until_numbers(&scenario, "all", [0, 1, 1, 1]);
    let refused = kubectl.refused(&["delete", "pod", "web-0"], "").unwrap();
    assert!(refused.contains(EXHAUSTED), "{refused}");
    kubectl
        .run(&["delete", "namespace", "budget-namespace", "--wait=false"])
        .unwrap();
    until_gone(&scenario, "app=web");
    let released = json!({"metadata": {"finalizers": null}});
    kubectl.patch("podunavailablebudgets", "all", &released).unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_pods_of_a_daemonset_of_kubernetes_go_with_it() {
    let scenario = scenario("budget-daemonset");
    let kubectl = &scenario.kubectl;
    let spec =
        json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0, "protectTotalReplicas": 1});
    kubectl.apply(&budget("all", spec)).unwrap();
    let node = text(&kubectl.list("nodes", "").unwrap()[0], "/metadata/name");
    let mut template = deployment(1)["spec"]["template"].take();
    template["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    let daemons = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    kubectl.apply(&daemons).unwrap();
    until_numbers(&scenario, "all", [0, 1, 1, 1]);
    until_named(&scenario, "web", "all");
    let pod = text(&scenario.pods()[0], "/metadata/name");
    let refused = kubectl.refused(&["delete", "pod", &pod], "").unwrap();
    assert!(refused.contains(EXHAUSTED), "{refused}");
    kubectl
        .run(&["delete", "daemonset", "web", "--wait=false"])
        .unwrap();
    until_gone(&scenario, "app=web");
}
