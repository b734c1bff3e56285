//! Pods and numbers of budgets whose workload is of a kind that is known only at run time, or that have none.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{bare, budget, until_named, until_numbers};
use crate::cluster::{LIMIT, Scenario, scenario, web};

/// The definition of a kind with a scale.
fn games(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("games.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "games", "singular": "game", "kind": "Game", "listKind": "GameList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector",
                }},
            }],
        },
    })
}

/// The definition is deleted however the scenario ends.
struct Defined<'a>(&'a Scenario, String);

impl Drop for Defined<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.kubectl.run(&["delete", "crd", &self.1, "--wait=false"]) {
            eprintln!("{error:#}");
        }
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_target_of_a_custom_kind_is_followed_by_its_scale_subresource() {
    let scenario = scenario("budget-custom");
    let kubectl = &scenario.kubectl;
    let group = "budgets.example.com";
    kubectl.apply(&games(group)).unwrap();
    let defined = Defined(&scenario, format!("games.{group}"));
    kubectl
        .run(&["wait", "--for=condition=Established", "crd", &defined.1])
        .unwrap();
    let game = json!({"apiVersion": format!("{group}/v1"), "kind": "Game", "metadata": {"name": "one"},
                      "spec": {"replicas": 3}});
    wait::until_true("the kind is served", LIMIT, || Ok(kubectl.apply(&game).is_ok())).unwrap();
    let status = json!({"status": {"replicas": 3, "selector": "app=game"}});
    kubectl.patch_status(&defined.1, "one", &status).unwrap();
    for name in ["game-a", "game-b", "game-c"] {
        kubectl.apply(&bare(name, "game")).unwrap();
    }
    let target = json!({"apiVersion": format!("{group}/v7"), "kind": "Game", "name": "one"});
    kubectl
        .apply(&budget("game", json!({"targetRef": target, "maxUnavailable": 1})))
        .unwrap();
    until_numbers(&scenario, "game", [1, 3, 2, 3]);
    until_named(&scenario, "game", "game");
    kubectl
        .patch(&defined.1, "one", &json!({"spec": {"replicas": 4}}))
        .unwrap();
    until_numbers(&scenario, "game", [0, 3, 3, 4]);
    kubectl.run(&["delete", &defined.1, "one"]).unwrap();
    until_numbers(&scenario, "game", [0, 0, 0, 0]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_without_a_workload_are_counted_against_a_fixed_number_in_both_versions() {
    let scenario = scenario("budget-fixed");
    let kubectl = &scenario.kubectl;
    for name in ["a", "b", "c", "d"] {
        kubectl.apply(&bare(name, "solo")).unwrap();
    }
    let selector = json!({"matchLabels": {"app": "solo"}});
    let spec = json!({"selector": selector, "maxUnavailable": 1, "protectTotalReplicas": 4});
    kubectl.apply(&budget("solo", spec)).unwrap();
    until_numbers(&scenario, "solo", [1, 4, 3, 4]);
    kubectl.run(&["delete", "podunavailablebudgets", "solo"]).unwrap();
    let mut older = budget("older", json!({"selector": selector, "maxUnavailable": 1}));
    older["apiVersion"] = json!("policy.kruise.io/v1alpha1");
    older["metadata"]["annotations"] = json!({"pub.kruise.io/protect-total-replicas": "5"});
    kubectl.apply(&older).unwrap();
    until_numbers(&scenario, "older", [0, 4, 4, 5]);
    until_named(&scenario, "solo", "older");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_budget_of_a_cloneset_follows_its_scale() {
    let scenario = scenario("budget-cloneset");
    let kubectl = &scenario.kubectl;
    kubectl.apply(&web(3)).unwrap();
    let target = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"});
    kubectl
        .apply(&budget("web", json!({"targetRef": target, "maxUnavailable": 1})))
        .unwrap();
    until_numbers(&scenario, "web", [1, 3, 2, 3]);
    until_named(&scenario, "web", "web");
    scenario.patch(&json!({"spec": {"replicas": 4}}));
    until_numbers(&scenario, "web", [1, 4, 3, 4]);
}
