//! The log of a manager, as JSON that is filtered by object.

use std::path::PathBuf;

use kruise_e2e::{manager, wait};
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, container, scenario_gated, variable, web};

/// The settings of administrators.
const CONFIGURATION: &str = "kruise-configuration";

/// Lines that are JSON, which those of earlier managers are not, about this object.
fn about(namespace: &str, name: &str) -> Vec<Value> {
    let log = PathBuf::from(variable("KRUISE_E2E_DIR")).join(manager::LOG);
    let text = std::fs::read_to_string(log).unwrap();
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| line["namespace"] == namespace && line["name"] == name)
        .collect()
}

fn messages(lines: &[Value], level: &str) -> Vec<String> {
    let of_level = lines.iter().filter(|line| line["level"] == level);
    of_level
        .map(|line| line["message"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until these and no other lines are there.
fn until_logged(scenario: &Scenario, expected: &[&str]) {
    let namespace = scenario.kubectl.namespace().unwrap();
    let mut seen = Vec::new();
    let ended = wait::until_true("all lines are there", LIMIT, || {
        seen = messages(&about(namespace, "web"), "INFO");
        Ok(seen.len() >= expected.len())
    });
    assert!(ended.is_ok() && seen == expected, "{seen:?}");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn every_rollout_and_refusal_has_a_line_that_is_found_by_its_object() {
    let scenario = scenario_gated("logged");
    scenario.kubectl.apply(&web(2)).unwrap();
    scenario.until_status(&json!({"updatedReadyReplicas": 2}));
    let mut expected = vec!["rollout begun", "rollout ended"];
    until_logged(&scenario, &expected);

    let mut paused = container("nginx:2", "b");
    paused["spec"]["updateStrategy"] = json!({"paused": true});
    scenario.patch(&paused);
    expected.extend(["rollout begun", "rollout held"]);
    until_logged(&scenario, &expected);
    scenario.patch(&json!({"spec": {"updateStrategy": {"paused": false}}}));
    expected.extend(["rollout goes on", "rollout ended"]);
    until_logged(&scenario, &expected);
    let lines = about("logged", "web");
    let held = lines
        .iter()
        .find(|line| line["message"] == "rollout held")
        .unwrap();
    assert_eq!(held["reason"], "CloneSet is paused");
    assert_eq!(held["controller"], "cloneset-controller");

    // Scaling is no rollout, and a refused request has one line.
    scenario.patch(&json!({"spec": {"replicas": 3}}));
    scenario.until_status(&json!({"readyReplicas": 3}));
    let without_image = container("", "b").to_string();
    let patch = ["patch", "clonesets", "web", "--type=merge", "-p", &without_image];
    scenario.kubectl.refused(&patch, "").unwrap();
    expected.push("refused");
    until_logged(&scenario, &expected);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_verbosity_of_one_controller_changes_while_the_manager_runs() {
    let scenario = scenario_gated("verbose");
    let system = scenario.kubectl.in_namespace("kruise-system");
    scenario.kubectl.apply(&web(1)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 1}));
    assert_eq!(messages(&about("verbose", "web"), "DEBUG"), [""; 0]);

    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIGURATION},
        "data": {"Log_Verbosity": "cloneset-controller=4"},
    });
    system.apply(&settings).unwrap();
    let mut replicas = 1;
    wait::until_true("writes are logged", LIMIT, || {
        replicas += 1;
        scenario.patch(&json!({"spec": {"replicas": replicas}}));
        scenario.until_status(&json!({"readyReplicas": replicas}));
        let written = messages(&about("verbose", "web"), "DEBUG");
        Ok(written.iter().any(|message| message == "write"))
    })
    .unwrap();
    system
        .run(&["delete", "configmap", CONFIGURATION, "--ignore-not-found"])
        .unwrap();
}
