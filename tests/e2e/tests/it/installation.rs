//! Applying once more what `kruise manifests` prints, while a manager outside the cluster has made it its own.

use std::process::Command;

use serde_json::{Value, json};

use crate::cluster::{Scenario, crash_manager, scenario, scenario_alone, text, variable, web};

/// What is printed for a manager outside the cluster with these options.
pub(crate) fn manifests(more: &[&str]) -> String {
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

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_manager_runs_in_a_namespace_that_enforces_pod_security_restricted() {
    let scenario = scenario("restricted");
    let kubectl = &scenario.kubectl;
    let enforced = "pod-security.kubernetes.io/enforce=restricted";
    kubectl
        .run(&["label", "namespace", "restricted", enforced])
        .unwrap();
    let output = Command::new(variable("KRUISE_E2E_BIN"))
        .args(["manifests", "--namespace=restricted", "--image=example/kruise:1"])
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let read = ["create", "--dry-run=client", "--output=json", "--filename=-"];
    let printed = kubectl.run_with_input(&read, &printed).unwrap();
    let objects: Vec<Value> = serde_json::Deserializer::from_str(&printed)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let of_kind = |kind: &str| {
        let mut objects = objects.iter();
        objects.find(|object| object["kind"] == kind).unwrap().clone()
    };
    // Its priority is looked up even in a dry run.
    let priority = of_kind("PriorityClass");
    kubectl.apply(&priority).unwrap();
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "manager"},
        "spec": of_kind("Deployment").pointer("/spec/template/spec").unwrap()});
    let create = ["create", "--dry-run=server", "--filename=-"];
    kubectl.run_with_input(&create, &pod.to_string()).unwrap();
    let context = pod["spec"]["securityContext"].as_object_mut().unwrap();
    context.remove("seccompProfile").unwrap();
    kubectl.refused(&create, &pod.to_string()).unwrap();
    let name = text(&priority, "/metadata/name");
    kubectl.run(&["delete", "priorityclass", &name]).unwrap();
}
