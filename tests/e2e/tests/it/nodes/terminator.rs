//! A Job whose pod has sidecars completes: the agent stops them when the main container has ended.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::agent::Agents;
use super::{TOOL, on_nodes_alone, status_of};
use crate::cluster::{Flagged, LIMIT, text};
use crate::sidecarterminator::{GATE, IGNORE, WHEN, request_of, until_condition};

/// A container with a shell, which runs this script with these variables.
fn container(name: &str, script: &str, variables: &[&str]) -> Value {
    let env = variables
        .iter()
        .map(|name| json!({"name": name, "value": "true"}));
    json!({"name": name, "image": TOOL, "command": ["sh", "-c", script], "env": env.collect::<Vec<_>>()})
}

/// Ends well when it is asked to.
const OBEYS: &str = "trap 'exit 0' TERM; while true; do sleep 1; done";
/// Is killed at the end of its grace period.
const IGNORES: &str = "trap '' TERM; while true; do sleep 1; done";

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_job_with_sidecars_completes_and_its_containers_end_in_turn() {
    let on = on_nodes_alone("nodes-terminator");
    let kubectl = &on.scenario.kubectl;
    let _flagged = Flagged::shared(kubectl.kubeconfig(), &[GATE]);
    let _agents = Agents::start(&on);
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "report"},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": {"app": "report"}},
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 5,
                    "containers": [
                        container("main", "sleep 3", &[]),
                        container("log", OBEYS, &[WHEN]),
                        container("proxy", IGNORES, &[WHEN, IGNORE]),
                    ],
                },
            },
        },
    });
    kubectl.create(&job).unwrap();
    wait::until_true("the job is complete", LIMIT, || {
        let job = kubectl.get("jobs", "report")?;
        let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        Ok(conditions.any(|one| one["type"] == "Complete" && one["status"] == "True"))
    })
    .unwrap();

    let pods = || kubectl.list("pods", "app=report");
    wait::until_true("every container has ended", LIMIT, || {
        let pods = pods()?;
        let ended = |name| status_of(&pods[0], name)["state"]["terminated"].is_object();
        Ok(["main", "log", "proxy"].into_iter().all(ended))
    })
    .unwrap();
    let pod = pods().unwrap().remove(0);
    assert_eq!(pod["status"]["phase"], "Succeeded");
    until_condition(kubectl, &text(&pod, "/metadata/name"));
    let ended = |name: &str| status_of(&pod, name)["state"]["terminated"].clone();
    assert_eq!(ended("log")["exitCode"], 0, "it was asked to end");
    assert_eq!(ended("proxy")["exitCode"], 137, "it was killed");
    let time = |name: &str| -> jiff::Timestamp { text(&ended(name), "/finishedAt").parse().unwrap() };
    assert!(
        time("main") <= time("log") && time("log") <= time("proxy"),
        "{pod}"
    );

    for (suffix, container) in [("", "log"), ("-ignore-exit-code", "proxy")] {
        wait::until_true("the request has ended", LIMIT, || {
            let request = request_of(kubectl, &pod, suffix)?;
            let state = &request["status"]["containerRecreateStates"][0];
            Ok(request["status"]["phase"] == "Completed"
                && state["name"] == container
                && state["phase"] == "Succeeded")
        })
        .unwrap();
    }
    let requests = kubectl.list("containerrecreaterequests", "").unwrap();
    assert_eq!(requests.len(), 2, "{requests:?}");
}
