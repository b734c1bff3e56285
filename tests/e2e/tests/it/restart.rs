//! `kruise restart` on pods whose nodes have no agent: the tests play it.

use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};

use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, scenario, text, variable, web};
use crate::containerrecreaterequest::{now, report};

const REQUESTS: &str = "containerrecreaterequests";

fn begin(scenario: &Scenario, arguments: &[&str]) -> Child {
    Command::new(variable("KRUISE_E2E_BIN"))
        .args(["restart", "--any-agent"])
        .args(arguments)
        .arg("--kubeconfig")
        .arg(scenario.kubectl.kubeconfig())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What it printed: first what it did, then an error.
fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Requests that have not ended.
fn running(scenario: &Scenario) -> Vec<Value> {
    let mut requests = scenario.kubectl.list(REQUESTS, "").unwrap();
    requests.retain(|request| request["status"]["phase"] != "Completed");
    requests
}

/// The agent has dealt with the container of a request.
fn complete(scenario: &Scenario, request: &Value, phase: &str) {
    let states = json!([{"name": "main", "phase": phase, "message": "said by the agent"}]);
    report(
        scenario,
        &text(request, "/metadata/name"),
        &json!({"phase": "Completed", "completionTime": now(), "containerRecreateStates": states}),
    );
}

fn four_pods(scenario: &Scenario) {
    let mut set = web(4);
    set["spec"]["updateStrategy"]["maxUnavailable"] = json!(2);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 4, "updatedReadyReplicas": 4}));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_of_a_cloneset_get_their_requests_within_its_max_unavailable() {
    let scenario = scenario("restart");
    four_pods(&scenario);
    let pods = scenario.uids();
    let mut restart = begin(&scenario, &["clone/web", "--containers=main", "-n", "restart"]);
    let mut asked = BTreeMap::new();
    wait::until_true("the command ends", LIMIT, || {
        let running = running(&scenario);
        assert!(running.len() <= 2, "{running:?}");
        if let [request, ..] = running.as_slice() {
            *asked.entry(text(request, "/spec/podName")).or_insert(0) += 1;
            complete(&scenario, request, "Succeeded");
        }
        Ok(restart.try_wait()?.is_some())
    })
    .unwrap();
    let output = restart.wait_with_output().unwrap();
    let (said, error) = said(&output);
    assert!(output.status.success(), "{said}{error}");
    assert!(
        said.starts_with("CloneSet restart/web: 4 pods, at most 2 of 4 out of service\n"),
        "{said}"
    );
    assert!(said.ends_with("CloneSet restart/web: restarted\n"), "{said}");
    assert_eq!(asked.into_values().collect::<Vec<u32>>(), [1; 4]);
    assert_eq!(scenario.uids(), pods);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_first_failure_ends_a_restart_and_mistakes_are_told_before_it() {
    let scenario = scenario("restart-fails");
    four_pods(&scenario);
    let refused = |arguments: &[&str], why: &str| {
        let output = begin(&scenario, arguments).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let (_, error) = said(&output);
        assert!(error.contains(why), "{error}");
    };
    let namespace = "--namespace=restart-fails";
    refused(
        &["clone/web", "-c", "mian", namespace],
        "has no container mian; it has main",
    );
    refused(
        &["clone/absent", "-c", "main", namespace],
        "cannot read CloneSet restart-fails/absent",
    );
    refused(
        &["pod/web", "-c", "main", namespace],
        "a Pod cannot be restarted; these can: clone, daemon, asts",
    );
    assert_eq!(running(&scenario), Vec::<Value>::new());

    let restart = begin(&scenario, &["clone/web", "-c", "main", namespace]);
    wait::until_true("two pods have requests", LIMIT, || {
        Ok(running(&scenario).len() == 2)
    })
    .unwrap();
    complete(&scenario, &running(&scenario)[0], "Failed");
    let output = restart.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let (_, error) = said(&output);
    assert!(
        error.contains("container main: Failed said by the agent; no further pod is restarted"),
        "{error}"
    );
    assert_eq!(scenario.kubectl.list(REQUESTS, "").unwrap().len(), 2);
}
