//! Applying once more what `kruise manifests` prints, while a manager outside the cluster has made it its own.

use std::process::Command;

use serde_json::json;

use crate::cluster::{Scenario, crash_manager, scenario_alone, text, variable, web};

fn manifests(more: &[&str]) -> String {
    let mut command = Command::new(variable("KRUISE_E2E_BIN"));
    let output = command
        .args(["manifests", "--without-manager"])
        .args(more)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// URL of the first webhook of the validating configuration; empty if it has a service.
fn url(scenario: &Scenario) -> String {
    let configuration = "kruise-validating-webhook-configuration";
    let live = scenario
        .kubectl
        .get("validatingwebhookconfigurations", configuration)
        .unwrap();
    text(&live, "/webhooks/0/clientConfig/url")
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_manifests_apply_again_over_what_a_manager_outside_the_cluster_wrote() {
    let scenario = scenario_alone("apply-again");
    let system = scenario.kubectl.in_namespace("kruise-system");
    let apply = |text: &str| {
        let applied = system.run_with_input(&["apply", "-f", "-"], text);
        applied.unwrap_or_else(|error| panic!("{error}"))
    };
    let before = url(&scenario);
    let (base, _) = before.rsplit_once('/').unwrap();

    apply(&manifests(&["--webhook-url", base]));
    assert_eq!(url(&scenario), before);
    scenario.kubectl.apply(&web(1)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 1}));

    apply(&manifests(&[]));
    crash_manager(scenario.kubectl.kubeconfig());
    assert!(url(&scenario).starts_with("https://"));
    scenario.patch(&json!({"spec": {"replicas": 2}}));
    scenario.until_status(&json!({"readyReplicas": 2}));
}
